package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/core/types"
)

// ExecuteResult is what came of a list, and the block that holds what is included.
type ExecuteResult struct {
	FilterResult
	ExecutionPayload *engine.ExecutableData `json:"executionPayload"`
}

// ExecuteV1 does in one call what takes five with engine_filterV1: it filters the list, makes the block of what is
// included, has op-geth execute and check that block as it does one of engine_newPayloadV4, and makes it the head. Each
// transaction is decoded once, its sender recovered once, and it is executed twice and not three times: the block is
// assembled of the state that the filter has come to.
//
// The block is, byte for byte, the one that op-geth's block builder makes of the same attributes. Should its own checks
// refuse the block, nothing has changed, and the driver goes the long way.
func (api *FilterAPI) ExecuteV1(ctx context.Context, parent common.Hash, attributes engine.PayloadAttributes, transactions []hexutil.Bytes) (*ExecuteResult, error) {
	if err := checkRequest(&attributes, transactions); err != nil {
		return nil, err
	}
	if err := checkBlockAttributes(&attributes); err != nil {
		return nil, &filterError{codeInvalidRequest, err.Error()}
	}
	return inTurn(ctx, api, func() (*ExecuteResult, error) {
		run, result, err := api.run(ctx, parent, &attributes, transactions)
		if err != nil {
			return nil, err
		}
		block, err := run.assemble(ctx, api, &attributes)
		if err != nil {
			return nil, &filterError{codeRefused, fmt.Sprintf("no block can be made of the list: %v", err)}
		}
		// Whoever asked has been told that it failed, and may have gone another way since.
		if ctx.Err() != nil {
			return nil, &filterError{codeInternal, "cancelled"}
		}
		// As engine_newPayloadV4 does with a block that is there: a call whose answer was lost comes again.
		if !api.chain.HasBlockAndState(block.Hash(), block.NumberU64()) {
			if _, err := api.chain.InsertBlockWithoutSetHead(ctx, block, false); err != nil {
				return nil, &filterError{codeRefused, fmt.Sprintf("the client refuses its own block: %v", err)}
			}
		}
		if ctx.Err() != nil {
			return nil, &filterError{codeInternal, "cancelled"}
		}
		// One that is in the chain stays where it is, as with engine_forkchoiceUpdatedV3: going back is engine_rewindV1's.
		if api.chain.GetCanonicalHash(block.NumberU64()) != block.Hash() {
			if _, err := api.chain.SetCanonical(block); err != nil {
				return nil, &filterError{codeInternal, fmt.Sprintf("the block cannot be made the head: %v", err)}
			}
		}
		payload := engine.BlockToExecutableData(block, common.Big0, nil, nil).ExecutionPayload
		return &ExecuteResult{*result, payload}, nil
	})
}

// checkBlockAttributes looks at what a list is filtered without, as op-geth does before it builds.
func checkBlockAttributes(attributes *engine.PayloadAttributes) error {
	switch {
	case attributes.MinBaseFee == nil:
		return errors.New("the attributes lack minBaseFee")
	case attributes.Withdrawals == nil || len(attributes.Withdrawals) > 0:
		return errors.New("the attributes need an empty list of withdrawals")
	}
	return eip1559.ValidateHolocene1559Params(attributes.EIP1559Params)
}

// assemble makes the block of what was executed: what miner.generateWork in op-geth does after the last transaction, and
// what miner.prepareWork puts into the header that no transaction sees.
func (run *filterRun) assemble(ctx context.Context, api *FilterAPI, attributes *engine.PayloadAttributes) (*types.Block, error) {
	config, header := api.chain.Config(), run.header
	denominator, elasticity := eip1559.DecodeHolocene1559Params(attributes.EIP1559Params)
	if denominator == 0 {
		denominator, elasticity = config.BaseFeeChangeDenominator(header.Time), config.ElasticityMultiplier()
	}
	header.Extra = eip1559.EncodeOptimismExtraData(config, header.Time, denominator, elasticity, attributes.MinBaseFee)
	header.GasUsed = run.gas.Used()
	// From Isthmus on there are none.
	requests := types.CalcRequestsHash([][]byte{})
	header.RequestsHash = &requests
	body := types.Body{Transactions: run.transactions, Withdrawals: attributes.Withdrawals}
	return api.chain.Engine().FinalizeAndAssemble(ctx, api.chain, header, run.state, &body, run.receipts)
}
