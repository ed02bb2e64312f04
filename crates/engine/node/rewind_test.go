package main

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// manyBlocks is more than op-geth keeps states of in memory.
const manyBlocks = 200

func genesisHash(t *testing.T, n *runningNode) common.Hash {
	t.Helper()
	return n.backend.BlockChain().Genesis().Hash()
}

// extend builds one empty block after the other, with a gas limit that tells branches apart.
func extend(t *testing.T, client *rpc.Client, n *runningNode, parent common.Hash, count int, gasLimit uint64) []common.Hash {
	t.Helper()
	var hashes []common.Hash
	for range count {
		time := n.backend.BlockChain().GetHeaderByHash(parent).Time + 1
		attributes := testAttributes(time, gasLimit)
		result := filterList(t, client, parent, attributes, []hexutil.Bytes{})
		parent = buildExactly(t, client, parent, attributes, nil, result)
		hashes = append(hashes, parent)
		adopt(t, client, parent)
	}
	return hashes
}

func TestRewindGoesBackToABlockWhoseStateWasLongAgo(t *testing.T) {
	n, client := testNode(t, nil)
	genesis := genesisHash(t, n)
	first := extend(t, client, n, genesis, manyBlocks, testGasLimit)
	// What it is for: nothing can be built on such a block.
	attributes := testAttributes(n.backend.BlockChain().GetHeaderByHash(first[9]).Time+1, testGasLimit)
	err := client.Call(nil, "engine_filterV1", first[9], attributes, []hexutil.Bytes{})
	var refused rpc.Error
	if !errors.As(err, &refused) || refused.ErrorCode() != codeUnknownParent {
		t.Fatalf("expected code %d, got %v", codeUnknownParent, err)
	}
	for _, back := range []struct {
		hash   common.Hash
		number uint64
	}{{first[manyBlocks-2], manyBlocks - 1}, {first[9], 10}} {
		if err := client.Call(nil, "engine_rewindV1", back.hash); err != nil {
			t.Fatalf("to block %d: %v", back.number, err)
		}
		head := n.backend.BlockChain().CurrentBlock()
		if head.Hash() != back.hash || head.Number.Uint64() != back.number {
			t.Fatalf("asked to go back to block %d, the head is %d", back.number, head.Number.Uint64())
		}
		// The same once more changes nothing.
		if err := client.Call(nil, "engine_rewindV1", back.hash); err != nil {
			t.Fatal(err)
		}
		// Blocks are built on it again: the same ones, and others.
		again := extend(t, client, n, back.hash, 1, testGasLimit)
		if int(back.number) < manyBlocks && again[0] != first[back.number] {
			t.Errorf("block %d is another one after going back", back.number+1)
		}
		extend(t, client, n, back.hash, 2, testGasLimit-1_000)
	}
}

func TestRewindThatCannotBeIsRefusedAndChangesNothing(t *testing.T) {
	before := stateHistoryBlocks
	stateHistoryBlocks = 8
	t.Cleanup(func() { stateHistoryBlocks = before })
	n, client := testNode(t, nil)
	genesis := genesisHash(t, n)
	blocks := extend(t, client, n, genesis, manyBlocks, testGasLimit)
	for _, back := range []struct {
		hash common.Hash
		code int
	}{{common.Hash{7}, codeUnknownParent}, {blocks[9], codeStaysAhead}, {genesis, codeStaysAhead}} {
		err := client.Call(nil, "engine_rewindV1", back.hash)
		var refused rpc.Error
		if !errors.As(err, &refused) || refused.ErrorCode() != back.code {
			t.Fatalf("expected code %d, got %v", back.code, err)
		}
		if head := n.backend.BlockChain().CurrentBlock().Hash(); head != blocks[manyBlocks-1] {
			t.Fatalf("the head is another one after a refusal")
		}
	}
	extend(t, client, n, blocks[manyBlocks-1], 1, testGasLimit)
}
