// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice What a deployment fixes for good about its committees.
struct RegistrySettings {
    /// L1 blocks after its registration from which on an epoch, but the first, certifies. The FeeVault wants it longer
    /// than its withdrawal delay: whoever does not trust the new committee has left by then.
    uint32 epochNotice;
    /// How far ahead of the posted head a number must be for the governor to change something from it on.
    uint64 switchLead;
    /// The fewest members of a committee.
    uint16 minMembers;
    /// The least threshold of a committee.
    uint16 minThreshold;
}

/// @notice What other contracts ask of the CommitteeRegistry.
interface ICommitteeRegistry {
    /// @notice The inbox this registry belongs to.
    function inbox() external view returns (address);

    /// @notice How many epochs there are; the newest has this number.
    function epochCount() external view returns (uint64);

    /// @notice L1 blocks after its registration from which on an epoch, but the first, certifies.
    function epochNotice() external view returns (uint32);

    /// @notice Reverts unless the certificate is good; the epoch's first number.
    function verifyCertificate(
        uint64 epoch,
        uint64 number,
        bytes32 headerHash,
        uint64 signers,
        bytes calldata signature
    ) external view returns (uint64 firstNumber);

    /// @notice Whether just these members of the epoch signed the acknowledgement of `(epoch, number, headerHash)`.
    /// @param signers Bit j−1 is set for member j.
    /// @param signature Their signatures added up, 128 bytes as in EIP-2537.
    function acknowledged(
        uint64 epoch,
        uint64 number,
        bytes32 headerHash,
        uint64 signers,
        bytes calldata signature
    ) external view returns (bool);

    /// @notice The key of member `member` (from 1) of an epoch, 256 bytes.
    function memberKey(uint64 epoch, uint16 member) external view returns (bytes memory);

    /// @notice The encryption key of an epoch, 576 bytes.
    function encryptionKey(uint64 epoch) external view returns (bytes memory);

    /// @notice h_1 = [τ]_2 of an epoch's key, 256 bytes as in EIP-2537: what a singleton release is judged by.
    function h1(uint64 epoch) external view returns (bytes memory);

    /// @notice The epoch of a batch number; reverts when none is registered for it.
    function epochOf(uint64 number) external view returns (uint64);

    /// @notice The epoch that a header made by L1 names: that of its number, or the last one where none is registered
    /// (E-6).
    function servingEpoch(uint64 number) external view returns (uint64);

    /// @notice Whether the header that L1 makes for this number is the last of its epoch: its end was announced, with
    /// notice that is over.
    function endDue(uint64 number) external view returns (bool);

    /// @notice The L1 block after which the epoch of this number ends at the head, as far as is announced; the highest
    /// number for none.
    function endsAfter(uint64 number) external view returns (uint64 until);

    /// @notice Ends the epoch whose end is due with this number, of which L1 made the header. For the inbox.
    function endEpochAt(uint64 number) external;

    /// @notice First and last number of an epoch; the last is below the first when it ended before it began.
    function numbersOf(uint64 epoch) external view returns (uint64 firstNumber, uint64 lastNumber);

    /// @notice The rule set of a batch number.
    function rulesOf(uint64 number) external view returns (uint16);

    /// @notice The key that signs headers with this L1 origin.
    function sequencerAt(uint64 l1Block) external view returns (address);

    /// @notice The last L1 origin of headers that this key signs, as far as is known; 0 for one that was never named.
    function sequencerUntil(address sequencer) external view returns (uint64 lastBlock);
}
