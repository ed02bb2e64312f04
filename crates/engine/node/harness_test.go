package main

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/log"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	testChainID  = 77_001
	testGasLimit = 200_000_000
)

// account is an entry of the genesis.
type account struct {
	Address common.Address `json:"address"`
	Balance *hexutil.Big   `json:"balance"`
	Nonce   hexutil.Uint64 `json:"nonce"`
	Code    hexutil.Bytes  `json:"code"`
}

func testKey(name string) *ecdsa.PrivateKey {
	seed := sha256.Sum256([]byte("blindfold skip cases: " + name))
	key, err := crypto.ToECDSA(seed[:])
	if err != nil {
		panic(err)
	}
	return key
}

func testAddress(name string) common.Address {
	return crypto.PubkeyToAddress(testKey(name).PublicKey)
}

// testGenesis is the project's genesis with these accounts.
func testGenesis(t *testing.T, accounts []account) []byte {
	t.Helper()
	template, err := os.ReadFile("../genesis.json")
	if err != nil {
		t.Fatal(err)
	}
	var genesis map[string]any
	if err := json.Unmarshal(template, &genesis); err != nil {
		t.Fatal(err)
	}
	genesis["config"].(map[string]any)["chainId"] = testChainID
	genesis["gasLimit"] = hexutil.Uint64(testGasLimit).String()
	for _, a := range accounts {
		genesis["alloc"].(map[string]any)[a.Address.Hex()] = map[string]any{"balance": a.Balance, "nonce": a.Nonce, "code": a.Code}
	}
	text, err := json.Marshal(genesis)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// testNode runs the node in this process, on free ports, with these accounts in its genesis.
func testNode(t *testing.T, accounts []account) (*runningNode, *rpc.Client) {
	t.Helper()
	log.SetDefault(log.NewLogger(log.DiscardHandler()))
	dir := t.TempDir()
	config := nodeConfig{
		dataDir:       filepath.Join(dir, "chain"),
		genesisPath:   filepath.Join(dir, "genesis.json"),
		jwtSecretPath: filepath.Join(dir, "jwt.hex"),
		httpAddr:      "127.0.0.1",
		authAddr:      "127.0.0.1",
		httpModules:   []string{"eth"},
	}
	if err := os.WriteFile(config.genesisPath, testGenesis(t, accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config.jwtSecretPath, []byte(common.Hash{1}.Hex()), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := startNode(config)
	if err != nil {
		t.Fatal(err)
	}
	client := n.stack.Attach()
	t.Cleanup(func() {
		client.Close()
		if err := n.stack.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, client
}

// attributesDeposit is the L1-attributes deposit of a block, with all fee scalars zero.
func attributesDeposit(number uint64) []byte {
	data := make([]byte, 178)
	copy(data, types.JovianL1AttributesSelector)
	binary.BigEndian.PutUint64(data[12:], number)
	to := types.L1BlockAddr
	return mustMarshal(types.NewTx(&types.DepositTx{
		SourceHash: crypto.Keccak256Hash(data),
		From:       common.HexToAddress("0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001"),
		To:         &to,
		Value:      new(big.Int),
		Gas:        1_000_000,
		Data:       data,
	}))
}

func testAttributes(timestamp, gasLimit uint64) engine.PayloadAttributes {
	minBaseFee := uint64(0)
	return engine.PayloadAttributes{
		Timestamp:             timestamp,
		Random:                common.Hash{0x11},
		SuggestedFeeRecipient: testAddress("fee recipient"),
		Withdrawals:           []*types.Withdrawal{},
		BeaconRoot:            &common.Hash{0x22},
		Transactions:          [][]byte{attributesDeposit(timestamp)},
		NoTxPool:              true,
		GasLimit:              &gasLimit,
		EIP1559Params:         hexutil.MustDecode("0x000000fa00000006"),
		MinBaseFee:            &minBaseFee,
	}
}

func mustMarshal(tx *types.Transaction) []byte {
	raw, err := tx.MarshalBinary()
	if err != nil {
		panic(err)
	}
	return raw
}

func filterList(t *testing.T, client *rpc.Client, parent common.Hash, attributes engine.PayloadAttributes, list []hexutil.Bytes) FilterResult {
	t.Helper()
	var result FilterResult
	if err := client.Call(&result, "engine_filterV1", parent, attributes, list); err != nil {
		t.Fatal(err)
	}
	return result
}

// executeList has the node do everything in one call.
func executeList(t *testing.T, client *rpc.Client, parent common.Hash, attributes engine.PayloadAttributes, list []hexutil.Bytes) ExecuteResult {
	t.Helper()
	var result ExecuteResult
	if err := client.Call(&result, "engine_executeV1", parent, attributes, list); err != nil {
		t.Fatal(err)
	}
	return result
}

// buildExactly builds, checks and imports the block of the attributes and the included transactions, and
// fails unless it holds exactly those. It returns the block's hash.
func buildExactly(t *testing.T, client *rpc.Client, parent common.Hash, attributes engine.PayloadAttributes, list []hexutil.Bytes, result FilterResult) common.Hash {
	t.Helper()
	return buildPayload(t, client, parent, attributes, list, result).BlockHash
}

// buildPayload is buildExactly, and returns the whole payload.
func buildPayload(t *testing.T, client *rpc.Client, parent common.Hash, attributes engine.PayloadAttributes, list []hexutil.Bytes, result FilterResult) engine.ExecutableData {
	t.Helper()
	asked := attributes
	asked.Transactions = append([][]byte{}, attributes.Transactions...)
	for _, i := range result.Included {
		asked.Transactions = append(asked.Transactions, list[i])
	}
	state := engine.ForkchoiceStateV1{HeadBlockHash: parent}
	var response engine.ForkChoiceResponse
	if err := client.Call(&response, "engine_forkchoiceUpdatedV3", state, asked); err != nil {
		t.Fatal(err)
	}
	if response.PayloadID == nil {
		t.Fatalf("nothing built: %+v", response.PayloadStatus)
	}
	var built struct {
		ExecutionPayload engine.ExecutableData `json:"executionPayload"`
	}
	if err := client.Call(&built, "engine_getPayloadV5", response.PayloadID); err != nil {
		t.Fatal(err)
	}
	payload := built.ExecutionPayload
	if !reflect.DeepEqual(payload.Transactions, asked.Transactions) {
		t.Fatalf("the payload holds %d transactions, asked for %d", len(payload.Transactions), len(asked.Transactions))
	}
	if payload.GasUsed != result.GasUsed {
		t.Errorf("the payload uses %d gas, the filter said %d", payload.GasUsed, result.GasUsed)
	}
	var status engine.PayloadStatusV1
	if err := client.Call(&status, "engine_newPayloadV4", payload, []common.Hash{}, attributes.BeaconRoot, []hexutil.Bytes{}); err != nil {
		t.Fatal(err)
	}
	if status.Status != engine.VALID {
		t.Fatalf("the client refuses its own block: %+v", status)
	}
	return payload
}

// adopt makes a block the head.
func adopt(t *testing.T, client *rpc.Client, head common.Hash) {
	t.Helper()
	var response engine.ForkChoiceResponse
	state := engine.ForkchoiceStateV1{HeadBlockHash: head}
	if err := client.Call(&response, "engine_forkchoiceUpdatedV3", state, nil); err != nil {
		t.Fatal(err)
	}
	if response.PayloadStatus.Status != engine.VALID {
		t.Fatalf("the client does not adopt a block: %+v", response.PayloadStatus)
	}
}
