package main

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/log"
)

// RewindAPI serves engine_rewindV1.
type RewindAPI struct {
	chain *core.BlockChain
	// turn is that of the lists: no block of one comes to stand after it.
	turn chan struct{}
}

// RewindV1 makes a block of the chain the newest one, with its state, and removes the blocks above it. A driver asks
// for it whose records are behind the node's, because they came from a backup. States of more than 128 blocks ago are
// kept as what was changed since, so that op-geth neither builds on such a block nor goes back to it when it is named as
// the head.
//
// Where the state histories do not reach back to the block nothing changes: op-geth would go to a genesis without its
// state, from which it never returns. Nor does anything change for the genesis: whoever has no records at all may have
// lost or mistaken them, and then the node's blocks are what is left.
func (api *RewindAPI) RewindV1(ctx context.Context, hash common.Hash) error {
	select {
	case api.turn <- struct{}{}:
		defer func() { <-api.turn }()
	case <-ctx.Done():
		return &filterError{codeInternal, "cancelled while waiting"}
	}
	header := api.chain.GetHeaderByHash(hash)
	if header == nil || api.chain.GetCanonicalHash(header.Number.Uint64()) != hash {
		return &filterError{codeUnknownParent, "the block is not in the chain"}
	}
	number, newest := header.Number.Uint64(), api.chain.CurrentBlock().Number.Uint64()
	hasState := api.chain.HasState(header.Root)
	if newest == number && hasState {
		return nil
	}
	const remedy = "if the records of whoever drives it are the right ones, stop the execution client, give it an empty data folder with the chain's genesis, and start it: it is given its blocks again"
	if number == 0 {
		return &filterError{codeStaysAhead, fmt.Sprintf("the execution client has blocks up to %d and its driver's records none; %s", newest, remedy)}
	}
	if !hasState {
		if recoverable, err := api.chain.TrieDB().Recoverable(header.Root); err != nil || !recoverable {
			return &filterError{codeStaysAhead, fmt.Sprintf("the execution client is at block %d and has no state of block %d any more; %s", newest, number, remedy)}
		}
	}
	log.Warn("Going back", "head", number, "last", newest)
	if err := api.chain.SetHead(number); err != nil {
		return &filterError{codeInternal, fmt.Sprintf("cannot go back to block %d: %v", number, err)}
	}
	if head := api.chain.CurrentBlock(); head.Hash() != hash || !api.chain.HasState(header.Root) {
		return &filterError{codeInternal, fmt.Sprintf("went back to block %d in place of %d; %s", head.Number.Uint64(), number, remedy)}
	}
	return nil
}
