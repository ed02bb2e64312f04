package main

import (
	"fmt"
	"os"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/history"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/log"
	"github.com/ethereum/go-ethereum/node"
)

// repairChain removes blocks above the head, so that the driver can bring them anew. There are such blocks
// after a crash: blocks are written at once, their states later, and op-geth goes back to the last block
// whose state it has.
//
// Left alone, such a node is of no use: it answers VALID to payloads that it holds without executing them,
// does not move its head to a block that is still marked canonical, and, when it has gone back to genesis,
// waits for a snap sync that no peer will serve. It decides the last when it opens the chain, so that the
// repair comes before.
func repairChain(stack *node.Node, config *ethconfig.Config) error {
	if _, err := os.Stat(stack.ResolvePath("chaindata")); os.IsNotExist(err) {
		return nil
	}
	db, err := stack.OpenDatabaseWithOptions("chaindata", node.DatabaseOptions{
		Cache: config.DatabaseCache, Handles: config.DatabaseHandles,
	})
	if err != nil {
		return err
	}
	defer db.Close()
	rules, genesisHash, err := core.LoadChainConfig(db, config.Genesis)
	if err != nil {
		return err
	}
	consensus, err := ethconfig.CreateConsensusEngine(rules, db)
	if err != nil {
		return err
	}
	policy, err := history.NewPolicy(config.HistoryMode, genesisHash)
	if err != nil {
		return err
	}
	// The state database must be opened exactly as eth.New opens it: its histories are cut to what the settings
	// name. Nothing else is set up that would run beside it.
	chain, err := core.NewBlockChain(db, config.Genesis, consensus, &core.BlockChainConfig{
		StateScheme:             config.StateScheme,
		StateHistory:            config.StateHistory,
		TrienodeHistory:         config.TrienodeHistory,
		NodeFullValueCheckpoint: config.NodeFullValueCheckpoint,
		TrieCleanLimit:          config.TrieCleanCache,
		TrieDirtyLimit:          config.TrieDirtyCache,
		TrieTimeLimit:           config.TrieTimeout,
		SnapshotLimit:           config.SnapshotCache,
		TrieJournalDirectory:    stack.ResolvePath("triedb"),
		HistoryPolicy:           policy,
		TxLookupLimit:           -1,
	})
	if err != nil {
		return err
	}
	defer chain.Stop()
	if !aheadOfState(chain) {
		return nil
	}
	head := chain.CurrentBlock().Number.Uint64()
	log.Warn("Removing blocks without a state", "head", head, "last", chain.CurrentHeader().Number)
	if err := chain.SetHead(head); err != nil {
		return fmt.Errorf("cannot remove the blocks above %d: %w", head, err)
	}
	if aheadOfState(chain) {
		return fmt.Errorf("the blocks above %d cannot be removed", head)
	}
	return nil
}

func aheadOfState(chain *core.BlockChain) bool {
	head := chain.CurrentBlock().Number.Uint64()
	return chain.CurrentHeader().Number.Uint64() > head || chain.CurrentSnapBlock().Number.Uint64() > head
}
