package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/catalyst"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/p2p"
	"github.com/ethereum/go-ethereum/rpc"
)

// stateBufferMiB bounds what a crash costs. States are kept in memory for 128 blocks and then until this buffer
// is full; whatever was not written must be executed again.
const stateBufferMiB = 1

// stateHistoryBlocks is how far a node can go back: as many blocks as op-geth keeps by default. Tests set it.
var stateHistoryBlocks = ethconfig.Defaults.StateHistory

// databaseCacheMiB and databaseHandles suit a machine that runs other parts beside the node.
const (
	databaseCacheMiB = 256
	databaseHandles  = 256
)

// executeTimeout is more than a driver waits for one call of the Engine API.
const executeTimeout = 90 * time.Second

type nodeConfig struct {
	dataDir, genesisPath, jwtSecretPath string
	httpAddr, authAddr                  string
	httpPort, authPort                  int
	httpModules, httpVirtualHosts       []string
}

// readyLine is what the node prints when it serves.
type readyLine struct {
	HTTP        string      `json:"http"`
	Engine      string      `json:"engine"`
	ChainID     uint64      `json:"chainId"`
	GenesisHash common.Hash `json:"genesisHash"`
}

type runningNode struct {
	stack   *node.Node
	backend *eth.Ethereum
}

// startNode starts op-geth without peers and without a transaction pool that anyone could read from: blocks
// come by the Engine API alone.
func startNode(config nodeConfig) (*runningNode, error) {
	genesis, err := readGenesis(config.genesisPath)
	if err != nil {
		return nil, err
	}
	if err := checkSecret(config.jwtSecretPath); err != nil {
		return nil, err
	}
	// One call filters a second, makes its block and imports it: as long as its driver waits.
	timeouts := rpc.DefaultHTTPTimeouts
	timeouts.WriteTimeout = executeTimeout
	stack, err := node.New(&node.Config{
		Name:             "blindfold-node",
		DataDir:          config.dataDir,
		DBEngine:         rawdb.DBPebble,
		HTTPHost:         config.httpAddr,
		HTTPPort:         config.httpPort,
		HTTPModules:      config.httpModules,
		HTTPVirtualHosts: config.httpVirtualHosts,
		HTTPTimeouts:     timeouts,
		AuthAddr:         config.authAddr,
		AuthPort:         config.authPort,
		// The token is the guard of this port; host names differ between deployments.
		AuthVirtualHosts: []string{"*"},
		JWTSecret:        config.jwtSecretPath,
		P2P:              p2p.Config{NoDiscovery: true, NoDial: true, MaxPeers: 0, ListenAddr: ""},
	})
	if err != nil {
		return nil, err
	}
	running, err := register(stack, genesis)
	if err == nil {
		err = stack.Start()
	}
	if err != nil {
		return nil, errors.Join(err, stack.Close())
	}
	return running, nil
}

func register(stack *node.Node, genesis *core.Genesis) (*runningNode, error) {
	config := ethconfig.Defaults
	config.Genesis = genesis
	config.NetworkId = genesis.Config.ChainID.Uint64()
	config.SyncMode = ethconfig.FullSync
	config.StateScheme = rawdb.PathScheme
	config.StateHistory = stateHistoryBlocks
	config.RollupDisableTxPoolGossip = true
	config.TrieDirtyCache = stateBufferMiB
	config.DatabaseCache = databaseCacheMiB
	config.DatabaseHandles = databaseHandles
	// It would execute each block once more, to read ahead from the disk what is in memory here since the block was built.
	config.NoPrefetch = true
	if err := repairChain(stack, &config); err != nil {
		return nil, err
	}
	backend, err := eth.New(stack, &config)
	if err != nil {
		return nil, err
	}
	if err := catalyst.Register(stack, backend); err != nil {
		return nil, err
	}
	logs := filters.NewFilterSystem(backend.APIBackend, filters.Config{
		LogCacheSize:  config.FilterLogCacheSize,
		LogQueryLimit: config.LogQueryLimit,
		RangeLimit:    config.RangeLimit,
	})
	lists := newFilterAPI(backend.BlockChain())
	stack.RegisterAPIs([]rpc.API{
		{Namespace: "eth", Service: filters.NewFilterAPI(logs)},
		{Namespace: "engine", Service: lists, Authenticated: true},
		{Namespace: "engine", Service: &RewindAPI{backend.BlockChain(), lists.turn}, Authenticated: true},
	})
	return &runningNode{stack, backend}, nil
}

// checkSecret refuses a file without a secret before anything is created. op-geth would make up a secret where
// the file is missing, and the other side could not know it.
func checkSecret(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the secret of the Engine API: %w", err)
	}
	if digits := common.FromHex(strings.TrimSpace(string(text))); len(digits) != 32 {
		return fmt.Errorf("the secret of the Engine API in %s is not 64 hex digits", path)
	}
	return nil
}

func readGenesis(path string) (*core.Genesis, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the genesis file: %w", err)
	}
	genesis := new(core.Genesis)
	if err := json.Unmarshal(text, genesis); err != nil {
		return nil, fmt.Errorf("the genesis file %s: %w", path, err)
	}
	if genesis.Config == nil || genesis.Config.ChainID == nil || genesis.Config.ChainID.Sign() <= 0 || !genesis.Config.ChainID.IsUint64() {
		return nil, fmt.Errorf("the genesis file %s names no chain id", path)
	}
	// The filter is written for these rules; a chain without them would be built by others.
	if rules := genesis.Config; rules.Optimism == nil || rules.JovianTime == nil || *rules.JovianTime > genesis.Timestamp {
		return nil, fmt.Errorf("the genesis file %s does not start with the Jovian rules", path)
	}
	return genesis, nil
}
