// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IBlindedInbox, RunReference, Timing } from "./interfaces/IBlindedInbox.sol";
import { BatchHeader, BatchHeaders } from "./libraries/BatchHeaders.sol";
import { MerkleTree } from "./libraries/MerkleTree.sol";

/// @title What the BlindedInbox remembers of the posted headers
/// @notice The head, **one slot for a run**, whatever its length, and the list of the headers that L1 made itself.
/// A contract that needs a header takes it as calldata with its run and Merkle proof and calls `verifyHeader`.
abstract contract PostedHeaders is IBlindedInbox {
    using BatchHeaders for BatchHeader;

    /// @notice The last posted header; all zero before the first.
    struct Head {
        uint64 number;
        uint64 timestampMs;
        uint64 l1OriginNumber;
        uint64 forcedCursor;
    }

    /// @notice A header that L1 made.
    struct L1Made {
        /// Its number.
        uint64 number;
        /// The L1 block that made it.
        uint64 madeAt;
    }

    uint32 internal immutable postingDeadline;
    uint32 internal immutable forcedDelay;
    uint32 internal immutable answerWindow;
    uint32 private immutable hintDeadline;
    uint32 private immutable challengeWindow;
    uint32 private immutable withdrawalDelay;
    uint32 internal immutable maxOriginAgeSeconds;

    /// @inheritdoc IBlindedInbox
    Head public override head;
    /// @notice The last posted header's hash; the genesis hash before the first.
    bytes32 public override headHash;
    /// @inheritdoc IBlindedInbox
    uint64 public override lastCertifiedAt;
    /// @inheritdoc IBlindedInbox
    uint64 public override headPostedAt;
    /// @notice The second in which certified headers were last posted; that of the deployment before.
    uint64 public lastCertifiedTime;
    /// @notice The L1 block in which the first header was posted; 0 before.
    uint64 public firstPostedAt;
    /// @notice Commitment to the run that ends at a number, `keccak256(abi.encode(run))`; zero where none ends.
    mapping(uint64 lastNumber => bytes32 commitment) public runCommitment;
    /// @notice The headers that L1 made, in order: numbers and blocks rise.
    L1Made[] public l1Made;

    /// @notice A run was posted in the L1 block `postedAt`; `headerRoot` is the Merkle root of its header hashes, and
    /// `headHash` is the last of them. Its headers are in the input of this transaction, maybe among those of other
    /// runs, or, when L1 made the one header, in the event `L1Header`.
    event Posted(
        uint64 indexed firstNumber,
        uint64 indexed lastNumber,
        uint64 postedAt,
        bytes32 headHash,
        bytes32 headerRoot
    );

    /// @notice A deadline is zero, `forcedDelay` is not below `postingDeadline`, or `withdrawalDelay` is not above
    /// `postingDeadline + challengeWindow`.
    error BadTiming();

    constructor(Timing memory timing_) {
        bool positive = timing_.postingDeadline != 0 && timing_.forcedDelay != 0 && timing_.answerWindow != 0
            && timing_.hintDeadline != 0 && timing_.challengeWindow != 0 && timing_.withdrawalDelay != 0
            && timing_.maxOriginAgeSeconds != 0;
        bool ordered = timing_.forcedDelay < timing_.postingDeadline
            && timing_.withdrawalDelay > uint256(timing_.postingDeadline) + timing_.challengeWindow;
        if (!positive || !ordered) revert BadTiming();
        postingDeadline = timing_.postingDeadline;
        forcedDelay = timing_.forcedDelay;
        answerWindow = timing_.answerWindow;
        hintDeadline = timing_.hintDeadline;
        challengeWindow = timing_.challengeWindow;
        withdrawalDelay = timing_.withdrawalDelay;
        maxOriginAgeSeconds = timing_.maxOriginAgeSeconds;
        lastCertifiedAt = uint64(block.number);
        headPostedAt = uint64(block.number);
        lastCertifiedTime = uint64(block.timestamp);
    }

    /// @inheritdoc IBlindedInbox
    function timing() external view override returns (Timing memory) {
        return Timing({
            postingDeadline: postingDeadline,
            forcedDelay: forcedDelay,
            answerWindow: answerWindow,
            hintDeadline: hintDeadline,
            challengeWindow: challengeWindow,
            withdrawalDelay: withdrawalDelay,
            maxOriginAgeSeconds: maxOriginAgeSeconds
        });
    }

    /// @notice How many headers L1 has made.
    function l1MadeCount() external view returns (uint256) {
        return l1Made.length;
    }

    /// @notice The hash of a header, as it is signed and chained.
    function hashHeader(BatchHeader calldata header) external pure returns (bytes32) {
        return header.hash();
    }

    /// @inheritdoc IBlindedInbox
    function isRun(RunReference calldata run) public view override returns (bool) {
        return runCommitment[run.last] == keccak256(abi.encode(run));
    }

    /// @inheritdoc IBlindedInbox
    /// @param proof Siblings from the header's leaf (index `header.number − run.first`) up to the run's root.
    function verifyHeader(BatchHeader calldata header, RunReference calldata run, bytes32[] calldata proof)
        public
        view
        override
        returns (bool posted, bytes32 headerHash)
    {
        headerHash = header.hash();
        if (header.number < run.first || header.number > run.last || !isRun(run)) return (false, headerHash);
        posted = MerkleTree.verify(
            run.headerRoot,
            uint256(run.last) - run.first + 1,
            header.number - run.first,
            MerkleTree.leaf(headerHash),
            proof
        );
    }

    /// @dev Makes the last header of a run the head and remembers the run.
    function append(uint64 first, Head memory newHead, bytes32 newHash, bytes32 headerRoot) internal {
        head = newHead;
        headHash = newHash;
        headPostedAt = uint64(block.number);
        if (firstPostedAt == 0) firstPostedAt = uint64(block.number);
        remember(first, newHead.number, newHash, headerRoot);
    }

    /// @dev Remembers a run that ends with header `lastHash`.
    function remember(uint64 first, uint64 last, bytes32 lastHash, bytes32 headerRoot) internal {
        uint64 postedAt = uint64(block.number);
        runCommitment[last] = keccak256(
            abi.encode(RunReference({ first: first, last: last, postedAt: postedAt, headerRoot: headerRoot }))
        );
        emit Posted(first, last, postedAt, lastHash, headerRoot);
    }

    /// @dev Whether L1 made a header with a number in `(above, upTo]`.
    function l1MadeBetween(uint64 above, uint64 upTo) internal view returns (bool) {
        uint256 count = madeUpTo(above);
        return count < l1Made.length && l1Made[count].number <= upTo;
    }

    /// @dev How many of L1's headers have a number up to this one.
    function madeUpTo(uint64 number) private view returns (uint256 count) {
        uint256 high = l1Made.length;
        while (count < high) {
            uint256 middle = (count + high) / 2;
            if (l1Made[middle].number > number) high = middle;
            else count = middle + 1;
        }
    }

    /// @inheritdoc IBlindedInbox
    function l1MadeBelow(uint64 number, uint64 origin, uint64 laterOrigin)
        public
        view
        override
        returns (bool)
    {
        uint256 low = 0;
        uint256 high = l1Made.length;
        while (low < high) {
            uint256 middle = (low + high) / 2;
            if (l1Made[middle].madeAt > origin) high = middle;
            else low = middle + 1;
        }
        if (low == l1Made.length) return false;
        return l1Made[low].madeAt <= laterOrigin && l1Made[low].number < number;
    }

    /// @inheritdoc IBlindedInbox
    function lastMadeBelow(uint64 number) external view override returns (uint64 madeAt) {
        uint256 count = number == 0 ? 0 : madeUpTo(number - 1);
        return count == 0 ? 0 : l1Made[count - 1].madeAt;
    }
}
