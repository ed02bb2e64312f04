package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

var update = flag.Bool("update", false, "rewrite the files in testing/vectors/skip")

const vectorFolder = "../../../testing/vectors/skip"

// readCases reads every case file; each was written from skipCases.
func readCases(t *testing.T) []skipCase {
	t.Helper()
	built := skipCases()
	for _, c := range built {
		text, err := json.MarshalIndent(c, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, '\n')
		path := filepath.Join(vectorFolder, c.Name+".json")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		onDisk, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(onDisk, text) {
			t.Errorf("%s differs from its source; run go test -update", path)
		}
	}
	paths, err := filepath.Glob(filepath.Join(vectorFolder, "*.json"))
	if err != nil || len(paths) != len(built) {
		t.Fatalf("%d case files for %d cases (%v)", len(paths), len(built), err)
	}
	var cases []skipCase
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c skipCase
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		cases = append(cases, c)
	}
	return cases
}

func allAccounts(cases []skipCase) []account {
	var accounts []account
	for _, c := range cases {
		accounts = append(accounts, c.Accounts...)
	}
	return accounts
}

func TestSkipCases(t *testing.T) {
	cases := readCases(t)
	n, client := testNode(t, allAccounts(cases))
	genesis := n.backend.BlockChain().Genesis().Hash()
	provoked := map[Reason]bool{}
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			attributes := testAttributes(uint64(10+i), c.GasLimit)
			result := filterList(t, client, genesis, attributes, c.Transactions)
			if !reflect.DeepEqual(result.Included, c.Included) || !reflect.DeepEqual(result.Skipped, c.Skipped) {
				t.Errorf("included %v, expected %v\nskipped %v, expected %v", result.Included, c.Included, result.Skipped, c.Skipped)
			}
			buildExactly(t, client, genesis, attributes, c.Transactions, result)
			for _, skipped := range result.Skipped {
				provoked[skipped.Reason] = true
			}
		})
	}
	// What the client's checks cannot report any more, because an earlier check covers it, and the block's
	// size, which has its own test.
	unreachable := map[Reason]bool{
		AuthorizationCreate: true, InsufficientFundsForTransfer: true, GasOverflow: true, Other: true, BlockSizeExhausted: true,
	}
	for _, reason := range allReasons {
		if !provoked[reason] && !unreachable[reason] {
			t.Errorf("no case provokes %s", reason)
		}
	}
}

func TestBlockSize(t *testing.T) {
	c := newCase("block-size", "")
	c.fund("a", ether)
	n, client := testNode(t, c.Accounts)
	genesis := n.backend.BlockChain().Genesis().Hash()
	const size = 1_600_000 // 10 gas per zero byte: just below the cap of 2^24
	var list []hexutil.Bytes
	for nonce := uint64(0); nonce < 6; nonce++ {
		list = append(list, c.sign("a", c.dynamic("to", nonce, 0, func(tx *types.DynamicFeeTx) {
			tx.Gas, tx.Data = params.MaxTxGas, make([]byte, size)
		})))
	}
	list = append(list, c.transfer("a", "to", 5, 1))
	attributes := testAttributes(10, testGasLimit)
	result := filterList(t, client, genesis, attributes, list)
	if want := []Skipped{{5, BlockSizeExhausted}}; !reflect.DeepEqual(result.Skipped, want) {
		t.Fatalf("skipped %v, expected %v", result.Skipped, want)
	}
	buildExactly(t, client, genesis, attributes, list, result)
}

func TestChainOfBlocks(t *testing.T) {
	c := newCase("chain", "")
	c.fund("a", ether)
	n, client := testNode(t, c.Accounts)
	parent := n.backend.BlockChain().Genesis().Hash()
	for i := uint64(0); i < 3; i++ {
		list := []hexutil.Bytes{c.transfer("a", "to", i, 1), c.transfer("a", "to", i, 2), c.transfer("a", "to", i+2, 3)}
		attributes := testAttributes(10+i, testGasLimit)
		result := filterList(t, client, parent, attributes, list)
		if want := []int{0}; !reflect.DeepEqual(result.Included, want) {
			t.Fatalf("block %d includes %v", i+1, result.Included)
		}
		again := filterList(t, client, parent, attributes, list)
		if !reflect.DeepEqual(again, result) {
			t.Fatal("a repetition differs")
		}
		parent = buildExactly(t, client, parent, attributes, list, result)
	}
}

func TestRefusedRequests(t *testing.T) {
	n, client := testNode(t, nil)
	genesis := n.backend.BlockChain().Genesis().Hash()
	list := []hexutil.Bytes{}
	good := func() engine.PayloadAttributes { return testAttributes(10, testGasLimit) }
	cases := map[string]struct {
		parent common.Hash
		change func(*engine.PayloadAttributes)
		list   []hexutil.Bytes
		code   int
	}{
		"unknown parent":     {common.Hash{9}, func(*engine.PayloadAttributes) {}, list, codeUnknownParent},
		"no gas limit":       {genesis, func(a *engine.PayloadAttributes) { a.GasLimit = nil }, list, codeInvalidRequest},
		"no beacon root":     {genesis, func(a *engine.PayloadAttributes) { a.BeaconRoot = nil }, list, codeInvalidRequest},
		"pool admitted":      {genesis, func(a *engine.PayloadAttributes) { a.NoTxPool = false }, list, codeInvalidRequest},
		"no deposit":         {genesis, func(a *engine.PayloadAttributes) { a.Transactions = nil }, list, codeInvalidRequest},
		"garbage deposit":    {genesis, func(a *engine.PayloadAttributes) { a.Transactions[0] = []byte{0x7e, 1} }, list, codeInvalidRequest},
		"deposit of type 2":  {genesis, func(a *engine.PayloadAttributes) { a.Transactions[0] = typeTwo() }, list, codeInvalidRequest},
		"deposit over limit": {genesis, func(a *engine.PayloadAttributes) { limit := uint64(5); a.GasLimit = &limit }, list, codeInvalidRequest},
		"time not above":     {genesis, func(a *engine.PayloadAttributes) { a.Timestamp = 0 }, list, codeInvalidRequest},
		"too many":           {genesis, func(*engine.PayloadAttributes) {}, make([]hexutil.Bytes, maxTransactions+1), codeInvalidRequest},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			attributes := good()
			c.change(&attributes)
			var result FilterResult
			err := client.Call(&result, "engine_filterV1", c.parent, attributes, c.list)
			var coded rpc.Error
			if !errors.As(err, &coded) || coded.ErrorCode() != c.code {
				t.Fatalf("got %v, expected code %d", err, c.code)
			}
		})
	}
}

func typeTwo() []byte {
	c := newCase("refused", "")
	return c.transfer("a", "to", 0, 1)
}

func TestCancelledRequest(t *testing.T) {
	n, _ := testNode(t, nil)
	api := newFilterAPI(n.backend.BlockChain())
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	genesis := n.backend.BlockChain().Genesis().Hash()
	list := []hexutil.Bytes{{1}}
	if _, err := api.FilterV1(cancelled, genesis, testAttributes(10, testGasLimit), list); err == nil {
		t.Fatal("a cancelled request has a result")
	}
	// The turn was given back, and waiting for it can be cancelled, too.
	if _, err := api.FilterV1(context.Background(), genesis, testAttributes(10, testGasLimit), list); err != nil {
		t.Fatal(err)
	}
	api.turn <- struct{}{}
	if _, err := api.FilterV1(cancelled, genesis, testAttributes(10, testGasLimit), list); err == nil {
		t.Fatal("a cancelled request waited for its turn")
	}
}

func TestPanicIsAnError(t *testing.T) {
	n, _ := testNode(t, nil)
	api := newFilterAPI(n.backend.BlockChain())
	genesis := n.backend.BlockChain().Genesis().Hash()
	api.chain = nil
	_, err := api.FilterV1(context.Background(), genesis, testAttributes(10, testGasLimit), nil)
	var coded rpc.Error
	if !errors.As(err, &coded) || coded.ErrorCode() != codeInternal {
		t.Fatalf("got %v", err)
	}
}

func TestClassify(t *testing.T) {
	seen := map[Reason]bool{}
	for _, known := range clientErrors {
		if got := classify(fmt.Errorf("%w: address 0x1", known.err)); got != known.reason {
			t.Errorf("%v is %s, expected %s", known.err, got, known.reason)
		}
		seen[known.reason] = true
	}
	if got := classify(errors.New("something new")); got != Other {
		t.Errorf("an unknown error is %s", got)
	}
	listed := map[Reason]bool{}
	for _, reason := range allReasons {
		if listed[reason] {
			t.Errorf("%s is listed twice", reason)
		}
		listed[reason] = true
	}
	for reason := range seen {
		if !listed[reason] {
			t.Errorf("%s is not listed", reason)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range skipCases() {
		for _, raw := range c.Transactions {
			f.Add([]byte(raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tx, reason := decode(raw)
		if reason != "" {
			return
		}
		if tx.Type() == types.DepositTxType || tx.Type() == types.BlobTxType {
			t.Fatalf("type %d passed", tx.Type())
		}
		if again := mustMarshal(tx); !bytes.Equal(again, raw) {
			t.Fatalf("%x decodes, but encodes as %x", raw, again)
		}
	})
}
