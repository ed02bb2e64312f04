package main

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/log"
)

// RewindAPI serves engine_rewindV1.
type RewindAPI struct {
	chain *core.BlockChain
}

// RewindV1 makes a block of the chain the newest one, with its state, and removes the blocks above it. A driver asks
// for it whose records are behind the node's: they came from a backup, or begin anew. States of more than 128 blocks
// ago are kept as what was changed since, so that op-geth neither builds on such a block nor goes back to it when it is
// named as the head.
//
// It goes back as far as state histories reach; where they do not reach the block, it goes back further, to one whose
// state it has, and says so: the driver brings the blocks in between.
func (api *RewindAPI) RewindV1(hash common.Hash) error {
	header := api.chain.GetHeaderByHash(hash)
	if header == nil || api.chain.GetCanonicalHash(header.Number.Uint64()) != hash {
		return &filterError{codeUnknownParent, "the block is not in the chain"}
	}
	number, newest := header.Number.Uint64(), api.chain.CurrentBlock().Number.Uint64()
	if newest == number && api.chain.HasState(header.Root) {
		return nil
	}
	log.Warn("Going back", "head", number, "last", newest)
	if err := api.chain.SetHead(number); err != nil {
		return &filterError{codeInternal, fmt.Sprintf("cannot go back to block %d: %v", number, err)}
	}
	if head := api.chain.CurrentBlock(); head.Hash() != hash {
		return &filterError{codeUnknownParent, fmt.Sprintf("the state of block %d is not kept any more: went back to block %d", number, head.Number.Uint64())}
	}
	return nil
}
