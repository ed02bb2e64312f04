// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BatchHeader } from "../libraries/BatchHeaders.sol";

/// @notice All deadlines of a deployment, in L1 blocks, fixed for good.
struct Timing {
    /// A header can be posted until this long after its L1 origin; after as long a silence L1 makes headers itself.
    uint32 postingDeadline;
    /// A forced item must be in a batch whose L1 origin is this far after it.
    uint32 forcedDelay;
    /// Time to answer an accusation, and to post one of two headers that were shown for a number.
    uint32 answerWindow;
    /// A run that has no hints on L1 this long after it was posted can be declared void.
    uint32 hintDeadline;
    /// Hints can be challenged this long.
    uint32 challengeWindow;
    /// A fee account can be withdrawn without the rollup's doing this long after the request.
    uint32 withdrawalDelay;
    /// How far a header's time may be ahead of its L1 origin's, in seconds.
    uint32 maxOriginAgeSeconds;
}

/// @notice A posted run of headers, as it is committed to: `keccak256(abi.encode(run))`.
struct RunReference {
    /// Number of the first header.
    uint64 first;
    /// Number of the last header.
    uint64 last;
    /// The L1 block it was posted in.
    uint64 postedAt;
    /// Merkle root over the header hashes.
    bytes32 headerRoot;
}

/// @notice What other contracts ask of the BlindedInbox.
interface IBlindedInbox {
    /// @notice Whose signature stands under headers whose L1 origin is this block.
    function sequencer() external view returns (address);

    /// @notice The L1 block in which the bond of this sequencer was lost last; 0 if it never was.
    function slashedAt(address sequencer_) external view returns (uint64);

    /// @notice The deadlines.
    function timing() external view returns (Timing memory);

    /// @notice The last posted header's number, time, L1 origin and cursor into the forced queue.
    function head()
        external
        view
        returns (uint64 number, uint64 timestampMs, uint64 l1OriginNumber, uint64 forcedCursor);

    /// @notice The last posted header's hash.
    function headHash() external view returns (bytes32);

    /// @notice The L1 block in which certified headers were last posted; that of the deployment before.
    function lastCertifiedAt() external view returns (uint64);

    /// @notice The L1 block in which the head was posted; later than `lastCertifiedAt` exactly when L1 made it.
    function headPostedAt() external view returns (uint64);

    /// @notice Whether L1 made a header below `number` in a block of `(origin, laterOrigin]`: a header with the first
    /// origin was made without knowing of it, one with the second follows it.
    function l1MadeBelow(uint64 number, uint64 origin, uint64 laterOrigin) external view returns (bool);

    /// @notice The L1 block in which L1 made the last of its headers with a number below this one; 0 for none.
    function lastMadeBelow(uint64 number) external view returns (uint64 madeAt);

    /// @notice Whether this run was posted.
    function isRun(RunReference calldata run) external view returns (bool);

    /// @notice Whether `header` was posted in `run`, and its hash.
    function verifyHeader(BatchHeader calldata header, RunReference calldata run, bytes32[] calldata proof)
        external
        view
        returns (bool posted, bytes32 headerHash);
}
