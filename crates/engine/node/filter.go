package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"runtime/debug"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/misc"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/log"
	"github.com/ethereum/go-ethereum/params"
)

const (
	// filterVersion is the version of the interface and of the rule.
	filterVersion = 1
	// maxTransactions bounds the list of one call. A second of 8 MiB cannot hold more that decode: the
	// shortest transaction is 10 bytes.
	maxTransactions = 1 << 20
	// blockFrameBytes is kept free of the block's size limit: header (under 1 KiB) and list prefixes.
	blockFrameBytes = 2048
	// transactionPrefixBytes bounds the RLP string prefix of a typed transaction inside a block.
	transactionPrefixBytes = 4
)

// JSON-RPC error codes of engine_filterV1 and engine_executeV1.
const (
	codeUnknownParent  = -39001
	codeInvalidRequest = -39002
	codeInternal       = -39003
	// codeStaysAhead is of engine_rewindV1: nothing has changed, and a person has to look.
	codeStaysAhead = -39004
	// codeRefused is of engine_executeV1: nothing has changed, and the block may be built in steps.
	codeRefused = -39005
)

type filterError struct {
	code    int
	message string
}

func (e *filterError) Error() string  { return e.message }
func (e *filterError) ErrorCode() int { return e.code }

// FilterResult says which transactions of the list a block holds. Indices refer to the list and rise.
type FilterResult struct {
	Included []int     `json:"included"`
	Skipped  []Skipped `json:"skipped"`
	GasUsed  uint64    `json:"gasUsed"`
}

// Skipped is one transaction left out.
type Skipped struct {
	Index  int    `json:"index"`
	Reason Reason `json:"reason"`
}

// FilterInfo is what the two sides compare at start-up.
type FilterInfo struct {
	Version         int         `json:"version"`
	ChainID         uint64      `json:"chainId"`
	GenesisHash     common.Hash `json:"genesisHash"`
	MaxTransactions int         `json:"maxTransactions"`
	Reasons         []Reason    `json:"reasons"`
	// Executes says that engine_executeV1 is served.
	Executes bool `json:"executes"`
}

// FilterAPI serves engine_filterV1, engine_executeV1 and engine_filterInfoV1.
type FilterAPI struct {
	chain *core.BlockChain
	// turn lets one list run at a time: each holds a state and the whole list in memory.
	turn chan struct{}
}

func newFilterAPI(chain *core.BlockChain) *FilterAPI {
	return &FilterAPI{chain: chain, turn: make(chan struct{}, 1)}
}

// FilterInfoV1 describes the filter.
func (api *FilterAPI) FilterInfoV1() FilterInfo {
	return FilterInfo{
		Version:         filterVersion,
		ChainID:         api.chain.Config().ChainID.Uint64(),
		GenesisHash:     api.chain.Genesis().Hash(),
		MaxTransactions: maxTransactions,
		Reasons:         allReasons,
		Executes:        true,
	}
}

// FilterV1 executes the list in order on the parent's state, after the system calls and the transactions of
// the attributes (deposits, which are never left out), and reports which transactions execute. Nothing is
// written. The block built from the same attributes with the included ones appended holds exactly those.
func (api *FilterAPI) FilterV1(ctx context.Context, parent common.Hash, attributes engine.PayloadAttributes, transactions []hexutil.Bytes) (*FilterResult, error) {
	if err := checkRequest(&attributes, transactions); err != nil {
		return nil, err
	}
	return inTurn(ctx, api, func() (*FilterResult, error) {
		_, result, err := api.run(ctx, parent, &attributes, transactions)
		return result, err
	})
}

// inTurn works when it is the call's turn. A panic is an error.
func inTurn[T any](ctx context.Context, api *FilterAPI, work func() (*T, error)) (result *T, err error) {
	select {
	case api.turn <- struct{}{}:
		defer func() { <-api.turn }()
	case <-ctx.Done():
		return nil, &filterError{codeInternal, "cancelled while waiting"}
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			log.Error("Filter panicked", "err", thrown, "stack", string(debug.Stack()))
			result, err = nil, &filterError{codeInternal, fmt.Sprintf("the filter panicked: %v", thrown)}
		}
	}()
	return work()
}

// run executes the list of a request that was checked on the parent's state.
func (api *FilterAPI) run(ctx context.Context, parent common.Hash, attributes *engine.PayloadAttributes, transactions []hexutil.Bytes) (*filterRun, *FilterResult, error) {
	run, err := api.prepare(parent, attributes)
	if err != nil {
		return nil, nil, err
	}
	result, err := run.filter(ctx, transactions)
	return run, result, err
}

func checkRequest(attributes *engine.PayloadAttributes, transactions []hexutil.Bytes) error {
	switch {
	case len(transactions) > maxTransactions:
		return &filterError{codeInvalidRequest, fmt.Sprintf("%d transactions, at most %d are filtered", len(transactions), maxTransactions)}
	case attributes.GasLimit == nil:
		return &filterError{codeInvalidRequest, "the attributes lack gasLimit"}
	case attributes.BeaconRoot == nil:
		return &filterError{codeInvalidRequest, "the attributes lack parentBeaconBlockRoot"}
	case !attributes.NoTxPool:
		return &filterError{codeInvalidRequest, "the attributes admit transactions of the pool"}
	case len(attributes.Transactions) == 0:
		return &filterError{codeInvalidRequest, "the attributes lack the L1-attributes deposit"}
	}
	return nil
}

// filterRun is the state of one call.
type filterRun struct {
	header *types.Header
	signer types.Signer
	state  *state.StateDB
	evm    *vm.EVM
	gas    *core.GasPool
	// size is an upper bound of the block's encoded size so far.
	size int
	// transactions and receipts are those of the block so far.
	transactions []*types.Transaction
	receipts     []*types.Receipt
	included     map[common.Hash]struct{}
}

// prepare does what the block builder does before the first transaction of the list: see miner.prepareWork
// and miner.generateWork in op-geth, which this must follow step by step.
func (api *FilterAPI) prepare(parentHash common.Hash, attributes *engine.PayloadAttributes) (*filterRun, error) {
	config := api.chain.Config()
	parent := api.chain.GetHeaderByHash(parentHash)
	if parent == nil {
		return nil, &filterError{codeUnknownParent, "the parent is unknown"}
	}
	if attributes.Timestamp <= parent.Time {
		return nil, &filterError{codeInvalidRequest, fmt.Sprintf("time stamp %d is not above the parent's, %d", attributes.Timestamp, parent.Time)}
	}
	statedb, err := api.chain.StateAt(parent.Root)
	if err != nil {
		return nil, &filterError{codeUnknownParent, fmt.Sprintf("the parent's state is not there: %v", err)}
	}
	excessBlobGas := eip4844.CalcExcessBlobGas(config, parent, attributes.Timestamp)
	header := &types.Header{
		ParentHash:       parentHash,
		Number:           new(big.Int).Add(parent.Number, common.Big1),
		GasLimit:         *attributes.GasLimit,
		Time:             attributes.Timestamp,
		Coinbase:         attributes.SuggestedFeeRecipient,
		MixDigest:        attributes.Random,
		Difficulty:       new(big.Int),
		BaseFee:          eip1559.CalcBaseFee(config, parent, attributes.Timestamp),
		BlobGasUsed:      new(uint64),
		ExcessBlobGas:    &excessBlobGas,
		ParentBeaconRoot: attributes.BeaconRoot,
	}
	run := &filterRun{
		header:   header,
		signer:   types.MakeSigner(config, header.Number, header.Time),
		state:    statedb,
		evm:      vm.NewEVM(core.NewEVMBlockContext(header, api.chain, &header.Coinbase, config, statedb), statedb, config, vm.Config{}),
		gas:      core.NewGasPool(header.GasLimit),
		size:     blockFrameBytes,
		included: make(map[common.Hash]struct{}),
	}
	core.ProcessBeaconBlockRoot(*attributes.BeaconRoot, run.evm)
	core.ProcessParentBlockHash(parentHash, run.evm)
	misc.EnsureCreate2Deployer(config, header.Time, statedb)
	for i, raw := range attributes.Transactions {
		deposit := new(types.Transaction)
		if err := deposit.UnmarshalBinary(raw); err != nil || deposit.Type() != types.DepositTxType {
			return nil, &filterError{codeInvalidRequest, fmt.Sprintf("transaction %d of the attributes is no deposit", i)}
		}
		if err := run.apply(deposit, len(raw)); err != nil {
			return nil, &filterError{codeInvalidRequest, fmt.Sprintf("deposit %d cannot be included: %v", i, err)}
		}
	}
	return run, nil
}

func (run *filterRun) filter(ctx context.Context, list []hexutil.Bytes) (*FilterResult, error) {
	result := &FilterResult{Included: []int{}, Skipped: []Skipped{}}
	decoded := make([]*types.Transaction, len(list))
	faults := make([]Reason, len(list))
	recoverable := make([]*types.Transaction, 0, len(list))
	for i, raw := range list {
		if decoded[i], faults[i] = decode(raw); faults[i] == "" {
			recoverable = append(recoverable, decoded[i])
		}
	}
	// Senders are recovered on all cores, into the transactions; whoever comes first to one does it.
	core.SenderCacher().Recover(run.signer, recoverable)
	for i, raw := range list {
		if ctx.Err() != nil {
			return nil, &filterError{codeInternal, "cancelled"}
		}
		reason := faults[i]
		if reason == "" {
			reason = run.try(decoded[i], len(raw))
		}
		if reason == "" {
			result.Included = append(result.Included, i)
		} else {
			result.Skipped = append(result.Skipped, Skipped{i, reason})
		}
	}
	result.GasUsed = run.gas.Used()
	return result, nil
}

// decode takes one canonical transaction of type 0, 1, 2 or 4 and nothing else. A deposit would mint, a blob
// transaction without its blobs would crash the builder.
func decode(raw []byte) (*types.Transaction, Reason) {
	if len(raw) == 0 {
		return nil, Undecodable
	}
	if first := raw[0]; first <= 0x7f {
		switch first {
		case types.AccessListTxType, types.DynamicFeeTxType, types.SetCodeTxType:
		default:
			return nil, TypeNotAllowed
		}
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, Undecodable
	}
	if tx.Type() == types.LegacyTxType && !tx.Protected() {
		return nil, Unprotected
	}
	return tx, ""
}

// try includes the transaction, or changes nothing and says why.
func (run *filterRun) try(tx *types.Transaction, size int) Reason {
	if _, err := types.Sender(run.signer, tx); err != nil {
		if errors.Is(err, types.ErrInvalidChainId) {
			return WrongChainID
		}
		return InvalidSignature
	}
	// Only what is in the block counts: a transaction that came too early may come again.
	if _, there := run.included[tx.Hash()]; there {
		return Duplicate
	}
	if run.size+size+transactionPrefixBytes > params.MaxBlockSize {
		return BlockSizeExhausted
	}
	if err := run.apply(tx, size); err != nil {
		return classify(err)
	}
	run.included[tx.Hash()] = struct{}{}
	return ""
}

// apply executes the transaction as the block builder does: on error, state and gas are as before.
func (run *filterRun) apply(tx *types.Transaction, size int) error {
	snapshot, gas := run.state.Snapshot(), run.gas.Snapshot()
	run.state.SetTxContext(tx.Hash(), len(run.transactions))
	receipt, err := core.ApplyTransaction(run.evm, run.gas, run.state, run.header, tx)
	if err != nil {
		run.state.RevertToSnapshot(snapshot)
		run.gas.Set(gas)
		return err
	}
	run.transactions = append(run.transactions, tx)
	run.receipts = append(run.receipts, receipt)
	run.size += size + transactionPrefixBytes
	return nil
}
