package main

import (
	"errors"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/log"
)

// Reason says why a transaction cannot execute where it stands. The strings are stable: receipts and metrics
// of the rollup use them, and blindfold-engine holds the same list.
type Reason string

const (
	Undecodable                  Reason = "undecodable"
	TypeNotAllowed               Reason = "type_not_allowed"
	Unprotected                  Reason = "unprotected"
	WrongChainID                 Reason = "wrong_chain_id"
	InvalidSignature             Reason = "invalid_signature"
	Duplicate                    Reason = "duplicate"
	NonceTooLow                  Reason = "nonce_too_low"
	NonceTooHigh                 Reason = "nonce_too_high"
	NonceMax                     Reason = "nonce_max"
	GasLimitTooHigh              Reason = "gas_limit_too_high"
	SenderNotEOA                 Reason = "sender_not_eoa"
	FeeCapTooLarge               Reason = "fee_cap_too_large"
	TipTooLarge                  Reason = "tip_too_large"
	TipAboveFeeCap               Reason = "tip_above_fee_cap"
	FeeCapBelowBaseFee           Reason = "fee_cap_below_base_fee"
	AuthorizationListEmpty       Reason = "authorization_list_empty"
	AuthorizationCreate          Reason = "authorization_create"
	InsufficientFunds            Reason = "insufficient_funds"
	InsufficientFundsForTransfer Reason = "insufficient_funds_for_transfer"
	BlockGasExhausted            Reason = "block_gas_exhausted"
	BlockSizeExhausted           Reason = "block_size_exhausted"
	IntrinsicGas                 Reason = "intrinsic_gas"
	FloorDataGas                 Reason = "floor_data_gas"
	GasOverflow                  Reason = "gas_overflow"
	InitCodeTooLarge             Reason = "init_code_too_large"
	Other                        Reason = "other"
)

// allReasons lists every reason, in the order in which both sides know them.
var allReasons = []Reason{
	Undecodable, TypeNotAllowed, Unprotected, WrongChainID, InvalidSignature, Duplicate,
	NonceTooLow, NonceTooHigh, NonceMax, GasLimitTooHigh, SenderNotEOA,
	FeeCapTooLarge, TipTooLarge, TipAboveFeeCap, FeeCapBelowBaseFee,
	AuthorizationListEmpty, AuthorizationCreate,
	InsufficientFunds, InsufficientFundsForTransfer, BlockGasExhausted, BlockSizeExhausted,
	IntrinsicGas, FloorDataGas, GasOverflow, InitCodeTooLarge, Other,
}

// clientErrors maps the client's own pre-check errors, in the order of its checks.
var clientErrors = []struct {
	err    error
	reason Reason
}{
	{types.ErrInvalidChainId, WrongChainID},
	{types.ErrInvalidSig, InvalidSignature},
	{types.ErrTxTypeNotSupported, TypeNotAllowed},
	{core.ErrNonceTooHigh, NonceTooHigh},
	{core.ErrNonceTooLow, NonceTooLow},
	{core.ErrNonceMax, NonceMax},
	{core.ErrGasLimitTooHigh, GasLimitTooHigh},
	{core.ErrSenderNoEOA, SenderNotEOA},
	{core.ErrFeeCapVeryHigh, FeeCapTooLarge},
	{core.ErrTipVeryHigh, TipTooLarge},
	{core.ErrTipAboveFeeCap, TipAboveFeeCap},
	{core.ErrFeeCapTooLow, FeeCapBelowBaseFee},
	{core.ErrSetCodeTxCreate, AuthorizationCreate},
	{core.ErrEmptyAuthList, AuthorizationListEmpty},
	{core.ErrInsufficientFunds, InsufficientFunds},
	{core.ErrGasLimitReached, BlockGasExhausted},
	{core.ErrIntrinsicGas, IntrinsicGas},
	{core.ErrGasUintOverflow, GasOverflow},
	{core.ErrFloorDataGas, FloorDataGas},
	{core.ErrInsufficientFundsForTransfer, InsufficientFundsForTransfer},
	{vm.ErrMaxInitCodeSizeExceeded, InitCodeTooLarge},
}

// classify names an error of the client's pre-checks. An unknown one is still a skip: the block must be built.
func classify(err error) Reason {
	for _, known := range clientErrors {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	log.Warn("Transaction skipped for an unlisted reason", "err", err)
	return Other
}
