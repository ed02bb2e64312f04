package main

import (
	"crypto/ecdsa"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// skipCase is one case of the skip rule: a list executed on the genesis state, and what must come of it.
// The files in testing/vectors/skip hold these cases for every execution client.
type skipCase struct {
	Name         string          `json:"name"`
	Comment      string          `json:"comment"`
	ChainID      uint64          `json:"chainId"`
	GasLimit     uint64          `json:"gasLimit"`
	Accounts     []account       `json:"accounts"`
	Transactions []hexutil.Bytes `json:"transactions"`
	Included     []int           `json:"included"`
	Skipped      []Skipped       `json:"skipped"`
}

// caseBuilder collects a case; each account belongs to one case, so that all cases share one genesis.
type caseBuilder struct {
	skipCase
	signer types.Signer
}

const (
	ether        = 1_000_000_000_000_000_000
	gwei         = 1_000_000_000
	transferGas  = 21_000
	transferCost = transferGas * gwei
)

func newCase(name, comment string) *caseBuilder {
	return &caseBuilder{
		skipCase: skipCase{
			Name: name, Comment: comment, ChainID: testChainID, GasLimit: testGasLimit,
			Accounts: []account{}, Transactions: []hexutil.Bytes{}, Included: []int{}, Skipped: []Skipped{},
		},
		signer: types.NewIsthmusSigner(big.NewInt(testChainID)),
	}
}

func (c *caseBuilder) key(who string) *ecdsa.PrivateKey { return testKey(c.Name + "/" + who) }
func (c *caseBuilder) address(who string) common.Address {
	return testAddress(c.Name + "/" + who)
}

func (c *caseBuilder) fund(who string, wei int64) {
	c.Accounts = append(c.Accounts, account{Address: c.address(who), Balance: (*hexutil.Big)(big.NewInt(wei)), Code: hexutil.Bytes{}})
}

// add appends raw bytes with the outcome they must have; an empty reason means included.
func (c *caseBuilder) add(raw []byte, reason Reason) {
	index := len(c.Transactions)
	c.Transactions = append(c.Transactions, raw)
	if reason == "" {
		c.Included = append(c.Included, index)
	} else {
		c.Skipped = append(c.Skipped, Skipped{index, reason})
	}
}

func (c *caseBuilder) sign(who string, inner types.TxData) []byte {
	return mustMarshal(types.MustSignNewTx(c.key(who), c.signer, inner))
}

// transfer is a plain transfer at 1 gwei per gas.
func (c *caseBuilder) transfer(from, to string, nonce uint64, wei int64) []byte {
	return c.sign(from, c.dynamic(to, nonce, wei, nil))
}

func (c *caseBuilder) dynamic(to string, nonce uint64, wei int64, change func(*types.DynamicFeeTx)) *types.DynamicFeeTx {
	recipient := c.address(to)
	tx := &types.DynamicFeeTx{
		ChainID: big.NewInt(testChainID), Nonce: nonce, To: &recipient, Value: big.NewInt(wei),
		Gas: transferGas, GasFeeCap: big.NewInt(gwei), GasTipCap: big.NewInt(0),
	}
	if change != nil {
		change(tx)
	}
	return tx
}

func (c *caseBuilder) setCode(nonce uint64, list []types.SetCodeAuthorization) *types.SetCodeTx {
	return &types.SetCodeTx{
		ChainID: uint256.NewInt(testChainID), Nonce: nonce, To: c.address("to"), Value: new(uint256.Int),
		Gas: 100_000, GasFeeCap: uint256.NewInt(gwei), GasTipCap: new(uint256.Int), AuthList: list,
	}
}

// skipCases are all cases, built anew with deterministic signatures.
func skipCases() []skipCase {
	builders := []func() *caseBuilder{
		emptyCase, typesCase, nonceCase, fundsCase, depositCase, garbageCase, replayCase, feesCase, gasCase,
		blockGasCase, senderCase, setCodeCase, failingCase,
	}
	cases := make([]skipCase, len(builders))
	for i, build := range builders {
		cases[i] = build().skipCase
	}
	return cases
}

func emptyCase() *caseBuilder {
	return newCase("empty", "An empty list makes a block of the attributes deposit alone.")
}

func typesCase() *caseBuilder {
	c := newCase("types", "Each allowed type executes, and a contract is created.")
	c.fund("a", ether)
	to := c.address("to")
	c.add(c.sign("a", &types.LegacyTx{Nonce: 0, To: &to, Value: big.NewInt(1), Gas: transferGas, GasPrice: big.NewInt(gwei)}), "")
	c.add(c.sign("a", &types.AccessListTx{ChainID: big.NewInt(testChainID), Nonce: 1, To: &to, Value: big.NewInt(1), Gas: 30_000, GasPrice: big.NewInt(gwei),
		AccessList: types.AccessList{{Address: to, StorageKeys: []common.Hash{{1}}}}}), "")
	c.add(c.transfer("a", "to", 2, 1), "")
	authorization, err := types.SignSetCode(c.key("b"), types.SetCodeAuthorization{ChainID: *uint256.NewInt(testChainID), Address: to})
	if err != nil {
		panic(err)
	}
	c.add(c.sign("a", c.setCode(3, []types.SetCodeAuthorization{authorization})), "")
	c.add(c.sign("a", c.dynamic("to", 4, 0, func(tx *types.DynamicFeeTx) {
		tx.To, tx.Gas, tx.Data = nil, 100_000, []byte{0x00}
	})), "")
	return c
}

func nonceCase() *caseBuilder {
	c := newCase("nonces", "Nonces count inside the list; what came too early may come again, what is in the block may not.")
	c.fund("a", ether)
	zero, one, two := c.transfer("a", "to", 0, 1), c.transfer("a", "to", 1, 1), c.transfer("a", "to", 2, 1)
	c.add(two, NonceTooHigh)
	c.add(zero, "")
	c.add(c.transfer("a", "to", 0, 2), NonceTooLow)
	c.add(zero, Duplicate)
	c.add(two, NonceTooHigh)
	c.add(one, "")
	c.add(two, "")
	c.add(two, Duplicate)
	return c
}

func fundsCase() *caseBuilder {
	c := newCase("funds", "Balances count inside the list: drained by one transaction, filled by another.")
	c.fund("rich", ether)
	c.fund("drained", transferCost+1_000+transferCost)
	c.add(c.transfer("drained", "to", 0, transferCost+1_000), "")
	c.add(c.transfer("drained", "to", 1, 0), InsufficientFunds)
	c.add(c.transfer("poor", "to", 0, 0), InsufficientFunds)
	c.add(c.transfer("rich", "poor", 0, transferCost), "")
	c.add(c.transfer("poor", "to", 0, 0), "")
	c.add(c.sign("rich", c.dynamic("to", 1, 0, func(tx *types.DynamicFeeTx) {
		tx.Value = new(big.Int).Lsh(big.NewInt(1), 256)
	})), InsufficientFunds)
	c.add(c.sign("rich", c.dynamic("to", 1, 0, func(tx *types.DynamicFeeTx) {
		tx.GasFeeCap = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	})), InsufficientFunds)
	c.add(c.transfer("rich", "to", 1, 1), "")
	return c
}

func depositCase() *caseBuilder {
	c := newCase("forbidden-types", "A deposit would mint, a blob transaction has no blobs here; no type but 1, 2 and 4 has a prefix.")
	c.fund("a", ether)
	thief := c.address("thief")
	c.add(mustMarshal(types.NewTx(&types.DepositTx{
		From: thief, To: &thief, Mint: big.NewInt(ether), Value: new(big.Int), Gas: 50_000,
	})), TypeNotAllowed)
	c.add(attributesDeposit(7), TypeNotAllowed)
	c.add(c.transfer("thief", "to", 0, 1), InsufficientFunds)
	// The chain's own signer does not even sign one.
	c.add(mustMarshal(types.MustSignNewTx(c.key("a"), types.NewPragueSigner(big.NewInt(testChainID)), &types.BlobTx{
		ChainID: uint256.NewInt(testChainID), To: thief, Value: new(uint256.Int), Gas: transferGas, GasFeeCap: uint256.NewInt(gwei),
		GasTipCap: new(uint256.Int), BlobFeeCap: uint256.NewInt(gwei), BlobHashes: []common.Hash{{1, 2, 3}},
	})), TypeNotAllowed)
	valid := c.transfer("a", "to", 0, 1)
	for _, prefix := range []byte{0x00, 0x03, 0x05, 0x7d, 0x7e, 0x7f} {
		c.add(append([]byte{prefix}, valid[1:]...), TypeNotAllowed)
	}
	c.add([]byte{0x7e}, TypeNotAllowed)
	c.add(valid, "")
	return c
}

func garbageCase() *caseBuilder {
	c := newCase("garbage", "Whatever is not exactly one canonical transaction is skipped.")
	c.fund("a", ether)
	valid := c.transfer("a", "to", 0, 1)
	c.add([]byte{}, Undecodable)
	c.add([]byte{0x02}, Undecodable)
	c.add([]byte{0x80}, Undecodable)
	c.add([]byte{0xc0}, Undecodable)
	c.add([]byte{0xff, 0xff, 0xff, 0xff}, Undecodable)
	c.add([]byte("not a transaction"), TypeNotAllowed)
	c.add(valid[:len(valid)-1], Undecodable)
	c.add(append(append([]byte{}, valid...), 0x00), Undecodable)
	wrapped, err := rlp.EncodeToBytes(valid)
	if err != nil {
		panic(err)
	}
	c.add(wrapped, Undecodable)
	c.add(unsigned(c.dynamic("to", 0, 1, nil), 0, 0, 0), InvalidSignature)
	c.add(unsigned(c.dynamic("to", 0, 1, nil), 2, 1, 1), InvalidSignature)
	c.add(highS(c, c.dynamic("to", 0, 1, nil)), InvalidSignature)
	c.add(valid, "")
	return c
}

// unsigned encodes a transaction with signature values that nobody signed.
func unsigned(tx *types.DynamicFeeTx, v, r, s int64) []byte {
	tx.V, tx.R, tx.S = big.NewInt(v), big.NewInt(r), big.NewInt(s)
	return mustMarshal(types.NewTx(tx))
}

// highS encodes the other valid signature over the same transaction, which Ethereum refuses (EIP-2).
func highS(c *caseBuilder, tx *types.DynamicFeeTx) []byte {
	order, _ := new(big.Int).SetString("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
	v, r, s := types.MustSignNewTx(c.key("a"), c.signer, tx).RawSignatureValues()
	tx.V, tx.R, tx.S = new(big.Int).Sub(big.NewInt(1), v), r, new(big.Int).Sub(order, s)
	return mustMarshal(types.NewTx(tx))
}

func replayCase() *caseBuilder {
	c := newCase("replay-protection", "A transaction without a chain id, or with another chain's, is not for this chain.")
	c.fund("a", ether)
	to := c.address("to")
	legacy := &types.LegacyTx{Nonce: 0, To: &to, Value: big.NewInt(1), Gas: transferGas, GasPrice: big.NewInt(gwei)}
	other := types.NewIsthmusSigner(big.NewInt(1))
	c.add(mustMarshal(types.MustSignNewTx(c.key("a"), types.HomesteadSigner{}, legacy)), Unprotected)
	c.add(mustMarshal(types.MustSignNewTx(c.key("a"), other, legacy)), WrongChainID)
	c.add(mustMarshal(types.MustSignNewTx(c.key("a"), other, c.dynamic("to", 0, 1, func(tx *types.DynamicFeeTx) {
		tx.ChainID = big.NewInt(1)
	}))), WrongChainID)
	c.add(mustMarshal(types.MustSignNewTx(c.key("a"), other, &types.AccessListTx{
		ChainID: big.NewInt(1), To: &to, Value: new(big.Int), Gas: transferGas, GasPrice: big.NewInt(gwei),
	})), WrongChainID)
	c.add(c.sign("a", legacy), "")
	return c
}

func feesCase() *caseBuilder {
	c := newCase("fees", "Fee caps against the base fee of the first block, 980,392 wei.")
	c.fund("a", ether)
	fees := func(cap, tip *big.Int) []byte {
		return c.sign("a", c.dynamic("to", 0, 1, func(tx *types.DynamicFeeTx) { tx.GasFeeCap, tx.GasTipCap = cap, tip }))
	}
	huge := new(big.Int).Lsh(big.NewInt(1), 256)
	c.add(fees(big.NewInt(1), big.NewInt(0)), FeeCapBelowBaseFee)
	c.add(fees(big.NewInt(gwei), big.NewInt(gwei+1)), TipAboveFeeCap)
	c.add(fees(huge, big.NewInt(0)), FeeCapTooLarge)
	c.add(fees(big.NewInt(gwei), huge), TipTooLarge)
	c.add(fees(big.NewInt(gwei), big.NewInt(gwei)), "")
	return c
}

func gasCase() *caseBuilder {
	c := newCase("gas", "Gas limits against intrinsic cost, call-data floor, init code and the cap of 2^24.")
	c.fund("a", ether)
	gas := func(limit uint64, data []byte) []byte {
		return c.sign("a", c.dynamic("to", 0, 0, func(tx *types.DynamicFeeTx) { tx.Gas, tx.Data = limit, data }))
	}
	nonzero := make([]byte, 100)
	for i := range nonzero {
		nonzero[i] = 1
	}
	c.add(gas(transferGas-1, nil), IntrinsicGas)
	c.add(gas(0, nil), IntrinsicGas)
	c.add(gas(transferGas+1_599, nonzero), IntrinsicGas)
	c.add(gas(transferGas+3_999, nonzero), FloorDataGas)
	c.add(gas(params.MaxTxGas+1, nil), GasLimitTooHigh)
	c.add(gas(math.MaxUint64, nil), GasLimitTooHigh)
	create := func(size int) []byte {
		return c.sign("a", c.dynamic("to", 0, 0, func(tx *types.DynamicFeeTx) {
			tx.To, tx.Gas, tx.Data = nil, 1_000_000, make([]byte, size)
		}))
	}
	c.add(create(params.MaxInitCodeSize+1), InitCodeTooLarge)
	c.add(create(100), "")
	c.add(c.sign("a", c.dynamic("to", 1, 0, func(tx *types.DynamicFeeTx) { tx.Gas = params.MaxTxGas })), "")
	return c
}

func blockGasCase() *caseBuilder {
	c := newCase("block-gas", "What no longer fits into the block is skipped, what is smaller still fits; unused gas comes back.")
	c.GasLimit = 1_100_000 // the attributes deposit reserves 1,000,000 and uses 23,592
	c.fund("a", ether)
	limit := func(nonce, gas uint64) []byte {
		return c.sign("a", c.dynamic("to", nonce, 1, func(tx *types.DynamicFeeTx) { tx.Gas = gas }))
	}
	c.add(limit(0, 1_100_000), BlockGasExhausted)
	c.add(limit(0, 1_000_000), "")
	for nonce := uint64(1); nonce < 4; nonce++ {
		c.add(limit(nonce, 1_000_000), "")
	}
	c.add(limit(4, 1_000_000), BlockGasExhausted)
	c.add(limit(4, 900_000), "")
	return c
}

func senderCase() *caseBuilder {
	c := newCase("senders", "A contract cannot send, a delegated account can, and a nonce cannot overflow.")
	target := c.address("to")
	c.Accounts = append(c.Accounts,
		account{Address: c.address("contract"), Balance: (*hexutil.Big)(big.NewInt(ether)), Nonce: 1, Code: hexutil.Bytes{0x00}},
		account{Address: c.address("delegated"), Balance: (*hexutil.Big)(big.NewInt(ether)), Nonce: 1, Code: types.AddressToDelegation(target)},
		account{Address: c.address("last"), Balance: (*hexutil.Big)(big.NewInt(ether)), Nonce: math.MaxUint64, Code: hexutil.Bytes{}},
	)
	c.add(c.transfer("contract", "to", 1, 1), SenderNotEOA)
	c.add(c.transfer("delegated", "to", 1, 1), "")
	c.add(c.transfer("last", "to", math.MaxUint64, 1), NonceMax)
	return c
}

func setCodeCase() *caseBuilder {
	c := newCase("authorizations", "An authorization raises its signer's nonce, even one of another account; an empty list is refused.")
	c.fund("a", ether)
	c.fund("b", ether)
	c.add(c.sign("a", c.setCode(0, nil)), AuthorizationListEmpty)
	authorization, err := types.SignSetCode(c.key("b"), types.SetCodeAuthorization{ChainID: *uint256.NewInt(testChainID), Address: c.address("to")})
	if err != nil {
		panic(err)
	}
	c.add(c.sign("a", c.setCode(0, []types.SetCodeAuthorization{authorization})), "")
	c.add(c.transfer("b", "to", 0, 1), NonceTooLow)
	c.add(c.transfer("b", "to", 1, 1), "")
	invalid := authorization
	invalid.R = *uint256.NewInt(0)
	c.add(c.sign("a", c.setCode(1, []types.SetCodeAuthorization{invalid})), "")
	return c
}

func failingCase() *caseBuilder {
	c := newCase("failing", "A transaction that reverts or runs out of gas is in the block and pays: only pre-checks skip.")
	c.fund("a", ether)
	c.Accounts = append(c.Accounts,
		account{Address: c.address("reverts"), Balance: new(hexutil.Big), Nonce: 1, Code: hexutil.MustDecode("0x5f5ffd")},
		account{Address: c.address("loops"), Balance: new(hexutil.Big), Nonce: 1, Code: hexutil.MustDecode("0x5b5f56")},
	)
	call := func(to string, nonce uint64) []byte {
		return c.sign("a", c.dynamic(to, nonce, 0, func(tx *types.DynamicFeeTx) { tx.Gas = 100_000 }))
	}
	c.add(call("reverts", 0), "")
	c.add(call("loops", 1), "")
	c.add(c.transfer("a", "to", 2, 1), "")
	return c
}
