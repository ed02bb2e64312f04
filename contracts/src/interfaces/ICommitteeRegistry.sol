// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice What other contracts ask of the CommitteeRegistry.
interface ICommitteeRegistry {
    /// @notice The inbox this registry belongs to.
    function inbox() external view returns (address);

    /// @notice Reverts unless the certificate is good; the epoch's first number.
    function verifyCertificate(
        uint64 epoch,
        uint64 number,
        bytes32 headerHash,
        uint64 signers,
        bytes calldata signature
    ) external view returns (uint64 firstNumber);

    /// @notice The encryption key of an epoch, 576 bytes.
    function encryptionKey(uint64 epoch) external view returns (bytes memory);

    /// @notice The epoch of a batch number; reverts when none is registered for it.
    function epochOf(uint64 number) external view returns (uint64);

    /// @notice First and last number of an epoch.
    function numbersOf(uint64 epoch) external view returns (uint64 firstNumber, uint64 lastNumber);
}
