// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FaultRecords } from "./FaultRecords.sol";
import { PostedHeaders } from "./PostedHeaders.sol";
import { SequencerBond } from "./SequencerBond.sol";
import { RunReference, Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { BatchHeader, BatchHeaders } from "./libraries/BatchHeaders.sol";
import { EnvelopeTree } from "./libraries/EnvelopeTree.sol";
import { MerkleTree } from "./libraries/MerkleTree.sol";
import { Promises } from "./libraries/Promises.sol";

/// @title What costs a sequencer its bond
/// @notice **Equivocation**: two headers of one number bear its signature. **Omission**: it promised to seal an
/// item up to a number, the headers up to that number are posted, and nobody shows the item, byte for byte, in one of
/// them before the deadline. Both reports go by commit–reveal. Whoever signed answers, with the bond of that key, whether
/// or not its time is over: a sequencer promises nothing that it might not be there to keep.
///
/// A header that L1 makes throws away what the sequencer had signed after its parent. That is no fault of its: two
/// headers of one number are excused when one was signed without knowing of an L1-made header below them (its L1
/// origin is older) and the other follows it; a promise is excused when L1 made one of the 4,096 headers up to its
/// number, which is as long as an envelope lives. L1 makes none before the first posted header; so two headers are excused, too,
/// when one could not be posted any more, by the age of its L1 origin, when the chain's first header was posted and
/// where the other's origin is.
///
/// The code of BlindedInbox for these reports, which calls it on its own storage (`FaultReports`) because one contract
/// has no room for all of it. Called directly it finds no header, no bond and no accusation.
/// @dev A sequencer that signs one header for each number between two L1-made ones, gives one promise for each
/// envelope and keeps it, cannot lose its bond; but somebody has to answer accusations.
contract SequencerFaults is FaultRecords {
    using BatchHeaders for BatchHeader;

    /// @dev Made by the BlindedInbox.
    constructor(ICommitteeRegistry registry_, Timing memory timing_)
        PostedHeaders(timing_)
        SequencerBond(registry_, msg.sender)
    { }

    /// @notice Punishes the sequencer for two different headers of one number, both signed by it, by its whole bond,
    /// and opens the way for L1 to make that header (`postL1Header`). Works without a bond too.
    /// Evidence committed to: `keccak256(abi.encode(number, lesser hash, greater hash))`.
    /// @dev The two are marked for good as this signer's, together, so the same evidence never takes a later bond of its. Any
    /// other two do: whoever showed headers of its own while it had no bond, each beside one that nobody could post, is not
    /// free to hand them out. Under another key the same headers are another fault (K-3).
    function slashEquivocation(
        BatchHeader calldata first,
        bytes calldata firstSignature,
        BatchHeader calldata second,
        bytes calldata secondSignature,
        bytes32 salt
    ) external {
        uint64 number = first.number;
        if (number != second.number) revert DifferentNumbers(number, second.number);
        bytes32 firstHash = first.hash();
        bytes32 secondHash = second.hash();
        if (firstHash == secondHash) revert SameHeader(firstHash);
        address signer = signingSequencer(firstHash, firstSignature);
        if (signer == address(0)) revert BadSequencerSignature(1);
        if (signingSequencer(secondHash, secondSignature) != signer) revert BadSequencerSignature(2);
        bytes32 evidence = firstHash < secondHash
            ? keccak256(abi.encode(number, firstHash, secondHash))
            : keccak256(abi.encode(number, secondHash, firstHash));
        if (shownTogether[signer][evidence]) revert AlreadySlashed(number);
        (uint64 origin, uint64 later) = (first.l1OriginNumber, second.l1OriginNumber);
        if (origin > later) (origin, later) = (later, origin);
        if (l1MadeBelow(number, origin, later)) revert Excused(number);
        uint256 until = uint256(origin) + postingDeadline;
        if (later > until && (firstPostedAt == 0 || firstPostedAt > until)) revert Excused(number);
        reveal(evidence, salt);

        // Later showings do not put off what the first one opened; and a key opens nothing where it signs no headers.
        bool signs =
            later >= head.l1OriginNumber && later < block.number && registry.sequencerAt(later) == signer;
        if (signs && equivocatedAt[number] == 0) equivocatedAt[number] = block.number;
        shownTogether[signer][evidence] = true;
        (uint256 burnt, uint256 reward) = slash(signer, msg.sender);
        emit Equivocation(number, signer, msg.sender, firstHash, secondHash, burnt, reward);
    }

    /// @notice Says, with `ACCUSATION_STAKE`, that the sequencer left out an envelope that it promised to seal up to
    /// `sealBy`, as the item with this hash. Evidence committed to:
    /// `keccak256(abi.encode(envelopeId, itemHash, sealBy))`.
    /// @dev An accusation is about one promise. If the sequencer gave several for an envelope, each is accused of,
    /// answered and slashed by itself: none takes the place of another, so the first accuser can slash first.
    /// @param signature The sequencer's, over the `Promise`.
    function accuseOmission(
        bytes32 envelopeId,
        bytes32 itemHash,
        uint64 sealBy,
        bytes calldata signature,
        bytes32 salt
    ) external payable onlyInInbox {
        if (msg.value != ACCUSATION_STAKE) revert WrongStake(msg.value);
        if (head.number < sealBy) revert PromiseNotDue(head.number, sealBy);
        bytes32 promiseHash = Promises.hash(envelopeId, itemHash, sealBy);
        address signer = signingSequencer(promiseHash, signature);
        if (signer == address(0)) revert BadPromise();
        if (l1MadeBetween(sealBy > MAX_LIFETIME ? sealBy - MAX_LIFETIME : 0, sealBy)) revert Excused(sealBy);
        reveal(keccak256(abi.encode(envelopeId, itemHash, sealBy)), salt);
        bytes32 promiseId = keccak256(abi.encode(signer, promiseHash));
        if (accusations[promiseId].state != State.None) revert AlreadyAccused(promiseId);

        accusationOpened(signer);
        accusations[promiseId] =
            Accusation({ accuser: msg.sender, state: State.Open, accusedAt: uint64(block.number) });
        emit Accused(promiseId, envelopeId, msg.sender, signer, itemHash, sealBy, block.number + answerWindow);
    }

    /// @notice Answers an accusation by showing the promised item in a posted batch up to the promised number, with a
    /// verdict that keeps the promise: `accepted` or `duplicate`; or at the promised number itself `fee_nonce_used` or
    /// `insufficient_funds`, what its payer brought about. An earlier batch with one of these may be older than the
    /// promise. Anyone may, and gets the stake; in time as long as the bond is not slashed.
    /// @param promised The promise, as the accusation names it.
    /// @param header Header of the batch, in `run` by `headerProof`.
    /// @param index The item's place in the batch; its leaf is in the batch's envelope tree by `itemProof`.
    function answerOmission(
        GivenPromise calldata promised,
        BatchHeader calldata header,
        RunReference calldata run,
        bytes32[] calldata headerProof,
        uint256 index,
        uint8 code,
        bytes32[] calldata itemProof
    ) external {
        bytes32 promiseId = idOf(promised);
        Accusation storage accusation = accusations[promiseId];
        if (accusation.state != State.Open) revert NoOpenAccusation(promiseId);
        if (header.number > promised.sealBy) revert SealedTooLate(header.number, promised.sealBy);
        if (!Promises.keptBy(code, header.number == promised.sealBy)) revert PromiseNotKept(code);
        requirePosted(header, run, headerProof);
        bytes32 leaf = EnvelopeTree.leaf(promised.envelopeId, promised.itemHash, code);
        if (!MerkleTree.verify(header.envelopeRoot, header.envelopeCount, index, leaf, itemProof)) {
            revert NotInBatch(header.number, index);
        }

        accusation.state = State.Answered;
        accusationClosed(promised.sequencer);
        rewards[msg.sender] += ACCUSATION_STAKE;
        emit Answered(promiseId, msg.sender, header.number, index, code);
    }

    /// @notice Takes the bond for an accusation that nobody answered in time. Anyone may; the accuser gets half of the
    /// bond and its stake, the rest is burnt.
    function slashOmission(GivenPromise calldata promised) external {
        bytes32 promiseId = idOf(promised);
        Accusation storage accusation = accusations[promiseId];
        if (accusation.state != State.Open) revert NoOpenAccusation(promiseId);
        uint256 until = uint256(accusation.accusedAt) + answerWindow;
        if (block.number <= until) revert AnswerWindowOpen(until);

        accusation.state = State.Slashed;
        accusationClosed(promised.sequencer);
        address accuser = accusation.accuser;
        (uint256 burnt, uint256 reward) = slash(promised.sequencer, accuser);
        rewards[accuser] += ACCUSATION_STAKE;
        emit Omission(promiseId, accuser, burnt, reward);
    }

    function idOf(GivenPromise calldata promised) private pure returns (bytes32) {
        return keccak256(
            abi.encode(
                promised.sequencer, Promises.hash(promised.envelopeId, promised.itemHash, promised.sealBy)
            )
        );
    }

    function requirePosted(
        BatchHeader calldata header,
        RunReference calldata run,
        bytes32[] calldata headerProof
    ) private view {
        (bool posted,) = verifyHeader(header, run, headerProof);
        if (!posted) revert NotInRun(header.number);
    }
}
