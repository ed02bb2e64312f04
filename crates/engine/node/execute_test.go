package main

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

// sameByBoth executes a list on one node in one call, on the other step by step, and fails unless all is the same.
func sameByBoth(t *testing.T, atOnce, inSteps *rpc.Client, parent common.Hash, attributes engine.PayloadAttributes, list []hexutil.Bytes) common.Hash {
	t.Helper()
	result := executeList(t, atOnce, parent, attributes, list)
	filtered := filterList(t, inSteps, parent, attributes, list)
	if !reflect.DeepEqual(result.FilterResult, filtered) {
		t.Fatalf("in one call %+v, in steps %+v", result.FilterResult, filtered)
	}
	built := buildPayload(t, inSteps, parent, attributes, list, filtered)
	if !reflect.DeepEqual(*result.ExecutionPayload, built) {
		t.Fatalf("in one call\n%+v\nin steps\n%+v", *result.ExecutionPayload, built)
	}
	return built.BlockHash
}

func TestOneCallMakesTheBlockOfTheLongWay(t *testing.T) {
	cases := readCases(t)
	accounts := allAccounts(cases)
	one, atOnce := testNode(t, accounts)
	_, inSteps := testNode(t, accounts)
	genesis := genesisHash(t, one)
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			hash := sameByBoth(t, atOnce, inSteps, genesis, testAttributes(uint64(10+i), c.GasLimit), c.Transactions)
			if i == 0 && one.backend.BlockChain().CurrentBlock().Hash() != hash {
				t.Error("it is not the head")
			}
		})
	}
	t.Run("default parameters of the base fee", func(t *testing.T) {
		attributes := testAttributes(1_000, testGasLimit)
		attributes.EIP1559Params = make([]byte, 8)
		sameByBoth(t, atOnce, inSteps, genesis, attributes, nil)
	})
}

func TestOneCallExtendsAChain(t *testing.T) {
	c := newCase("execute-chain", "")
	c.fund("a", ether)
	one, atOnce := testNode(t, c.Accounts)
	_, inSteps := testNode(t, c.Accounts)
	chain := one.backend.BlockChain()
	parent := genesisHash(t, one)
	var hashes []common.Hash
	for i := uint64(0); i < 4; i++ {
		list := []hexutil.Bytes{
			c.transfer("a", "to", i, 1), c.transfer("a", "to", i, 2),
			c.sign("a", c.dynamic("to", i+2, 0, func(tx *types.DynamicFeeTx) {
				tx.To, tx.Gas, tx.Data = nil, 100_000, []byte{0x00}
			})),
		}
		attributes := testAttributes(10+i, testGasLimit)
		parent = sameByBoth(t, atOnce, inSteps, parent, attributes, list)
		hashes = append(hashes, parent)
		if head := chain.CurrentBlock(); head.Hash() != parent || !chain.HasState(head.Root) {
			t.Fatalf("block %d is not the head, with its state", i+1)
		}
		// The same call again, whose first answer was lost.
		if again := executeList(t, atOnce, chain.GetBlockByHash(parent).ParentHash(), attributes, list); again.ExecutionPayload.BlockHash != parent {
			t.Fatal("a repetition differs")
		}
	}
	// A call for a block below the head moves nothing back: that is for engine_rewindV1 to do.
	executeList(t, atOnce, hashes[0], testAttributes(11, testGasLimit), []hexutil.Bytes{c.transfer("a", "to", 1, 1)})
	if chain.CurrentBlock().Hash() != parent {
		t.Fatal("the head moved back")
	}
	// Another block in its place is another branch, which is the head then, as the driver says.
	branch := executeList(t, atOnce, hashes[1], testAttributes(99, testGasLimit), nil).ExecutionPayload.BlockHash
	if chain.CurrentBlock().Hash() != branch || chain.GetCanonicalHash(4) != (common.Hash{}) {
		t.Fatal("the other branch is not the head")
	}
}

func TestOneCallKeepsTheBlockSizeLimit(t *testing.T) {
	c := newCase("execute-size", "")
	c.fund("a", ether)
	one, atOnce := testNode(t, c.Accounts)
	_, inSteps := testNode(t, c.Accounts)
	var list []hexutil.Bytes
	for nonce := uint64(0); nonce < 6; nonce++ {
		list = append(list, c.sign("a", c.dynamic("to", nonce, 0, func(tx *types.DynamicFeeTx) {
			tx.Gas, tx.Data = params.MaxTxGas, make([]byte, 1_600_000)
		})))
	}
	sameByBoth(t, atOnce, inSteps, genesisHash(t, one), testAttributes(10, testGasLimit), list)
}

func TestRefusedExecutionsChangeNothing(t *testing.T) {
	n, client := testNode(t, nil)
	genesis := genesisHash(t, n)
	cases := map[string]struct {
		parent common.Hash
		change func(*engine.PayloadAttributes)
		code   int
	}{
		"unknown parent":      {common.Hash{9}, func(*engine.PayloadAttributes) {}, codeUnknownParent},
		"no gas limit":        {genesis, func(a *engine.PayloadAttributes) { a.GasLimit = nil }, codeInvalidRequest},
		"no minimum base fee": {genesis, func(a *engine.PayloadAttributes) { a.MinBaseFee = nil }, codeInvalidRequest},
		"no withdrawals":      {genesis, func(a *engine.PayloadAttributes) { a.Withdrawals = nil }, codeInvalidRequest},
		"a withdrawal":        {genesis, func(a *engine.PayloadAttributes) { a.Withdrawals = []*types.Withdrawal{{}} }, codeInvalidRequest},
		"no parameters":       {genesis, func(a *engine.PayloadAttributes) { a.EIP1559Params = nil }, codeInvalidRequest},
		"half of parameters":  {genesis, func(a *engine.PayloadAttributes) { a.EIP1559Params = hexutil.MustDecode("0x0000000000000006") }, codeInvalidRequest},
		"too far ahead":       {genesis, func(a *engine.PayloadAttributes) { limit := uint64(1) << 63; a.GasLimit = &limit }, codeRefused},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			attributes := testAttributes(10, testGasLimit)
			c.change(&attributes)
			err := client.Call(nil, "engine_executeV1", c.parent, attributes, []hexutil.Bytes{})
			var coded rpc.Error
			if !errors.As(err, &coded) || coded.ErrorCode() != c.code {
				t.Fatalf("got %v, expected code %d", err, c.code)
			}
			if n.backend.BlockChain().CurrentBlock().Hash() != genesis {
				t.Fatal("the head moved")
			}
		})
	}
}

// Whoever asked was told that it failed: nothing comes to stand afterwards.
func TestACancelledExecutionMovesNoHead(t *testing.T) {
	n, _ := testNode(t, nil)
	genesis := genesisHash(t, n)
	lists := newFilterAPI(n.backend.BlockChain())
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 {
		// With an empty list the filter itself does not look.
		if _, err := lists.ExecuteV1(cancelled, genesis, testAttributes(10, testGasLimit), nil); err == nil {
			t.Fatal("a cancelled call has a result")
		}
	}
	if n.backend.BlockChain().CurrentBlock().Hash() != genesis {
		t.Fatal("the head moved")
	}
	// While a list is executed nothing goes back below it.
	lists.turn <- struct{}{}
	if err := (&RewindAPI{n.backend.BlockChain(), lists.turn}).RewindV1(cancelled, genesis); err == nil {
		t.Fatal("it went back in the middle of a list")
	}
}
