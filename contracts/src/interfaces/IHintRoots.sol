// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice What the HintJudge asks of the HintRegistry.
interface IHintRoots {
    /// @notice Root of the hints that are final for the run that ends at `runLast`; zero for none.
    function finalRoot(uint64 runLast) external view returns (bytes32);
}
