// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FaultRecords } from "./FaultRecords.sol";
import { SequencerFaults } from "./SequencerFaults.sol";
import { RunReference, Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { BatchHeader } from "./libraries/BatchHeaders.sol";

/// @title Reports of the sequencer's faults, as BlindedInbox takes them
/// @notice What each report needs and does stands at the function of the same name in SequencerFaults. That contract is
/// made here, once and for all, and has the same storage layout; its code runs on this contract's storage.
abstract contract FaultReports is FaultRecords {
    /// @notice The code that judges reports.
    address public immutable faults;

    constructor(ICommitteeRegistry registry_, Timing memory timing_) {
        faults = address(new SequencerFaults(registry_, timing_));
    }

    /// @notice Punishes two different signed headers of one number.
    function slashEquivocation(
        BatchHeader calldata,
        bytes calldata,
        BatchHeader calldata,
        bytes calldata,
        bytes32
    ) external {
        delegate();
    }

    /// @notice Accuses of a broken promise, with `ACCUSATION_STAKE`.
    function accuseOmission(bytes32, bytes32, uint64, bytes calldata, bytes32) external payable {
        delegate();
    }

    /// @notice Answers an accusation by showing the envelope.
    function answerOmission(
        GivenPromise calldata,
        BatchHeader calldata,
        RunReference calldata,
        bytes32[] calldata,
        uint256,
        uint8,
        bytes32[] calldata
    ) external {
        delegate();
    }

    /// @notice Takes the bond for an accusation that nobody answered in time.
    function slashOmission(GivenPromise calldata) external {
        delegate();
    }

    /// @dev Runs the call's code in SequencerFaults, and ends as it ends.
    function delegate() private {
        address code = faults;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), code, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(done) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }
}
