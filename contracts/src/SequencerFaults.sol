// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { PostedHeaders } from "./PostedHeaders.sol";
import { SequencerBond } from "./SequencerBond.sol";
import { RunReference } from "./interfaces/IBlindedInbox.sol";
import { BatchHeader, BatchHeaders } from "./libraries/BatchHeaders.sol";
import { EnvelopeTree } from "./libraries/EnvelopeTree.sol";
import { MerkleTree } from "./libraries/MerkleTree.sol";
import { Promises } from "./libraries/Promises.sol";

/// @title What costs the sequencer its bond
/// @notice **Equivocation**: two headers of one number bear its signature. **Omission**: it promised to seal an
/// envelope up to a number, the headers up to that number are posted, and nobody shows the envelope in one of them
/// before the deadline. Both reports go by commit–reveal.
///
/// A header that L1 makes throws away what the sequencer had signed after its parent. That is no fault of its: two
/// headers of one number are excused when one was signed without knowing of an L1-made header below them (its L1
/// origin is older) and the other follows it; a promise is excused when L1 made one of the 4,096 headers up to its
/// number, which is as long as an envelope lives.
/// @dev A sequencer that signs one header for each number between two L1-made ones, gives one promise for each
/// envelope and keeps it, cannot lose its bond; but somebody has to answer accusations.
abstract contract SequencerFaults is PostedHeaders, SequencerBond {
    using BatchHeaders for BatchHeader;

    /// @notice What comes with an accusation; whoever answers it gets it.
    uint256 public constant ACCUSATION_STAKE = 0.1 ether;
    /// @notice The most numbers between an envelope's admission and its expiry.
    uint64 public constant MAX_LIFETIME = 4_096;

    /// @notice Where an accusation stands.
    enum State {
        None,
        Open,
        Answered,
        Slashed
    }

    /// @notice An accusation of having left out a promised envelope.
    struct Accusation {
        address accuser;
        /// The number that the promise names.
        uint64 sealBy;
        State state;
        /// The L1 block from which the window to answer is counted.
        uint64 accusedAt;
    }

    /// @notice The L1 block in which two headers of a number were shown; 0 where none were.
    mapping(uint64 number => uint256 l1Block) public equivocatedAt;
    /// @notice The accusation about an envelope.
    mapping(bytes32 envelopeId => Accusation) public accusations;

    /// @notice The sequencer signed two headers for `number` and lost its bond.
    event Equivocation(
        uint64 indexed number,
        address indexed reporter,
        bytes32 firstHash,
        bytes32 secondHash,
        uint256 burnt,
        uint256 reward
    );
    /// @notice The sequencer is said to have left out an envelope that it promised to seal up to `sealBy`. Without an
    /// answer it loses its bond after the L1 block `answerUntil`.
    event Accused(bytes32 indexed envelopeId, address indexed accuser, uint64 sealBy, uint256 answerUntil);
    /// @notice The envelope stands in batch `number` at `index`; the stake is the answerer's.
    event Answered(
        bytes32 indexed envelopeId, address indexed answerer, uint64 number, uint256 index, uint8 code
    );
    /// @notice Nobody answered; the sequencer lost its bond and the accuser has its stake back.
    event Omission(bytes32 indexed envelopeId, address indexed accuser, uint256 burnt, uint256 reward);

    /// @notice The two headers are of different numbers.
    error DifferentNumbers(uint64 first, uint64 second);
    /// @notice The two headers are the same.
    error SameHeader(bytes32 headerHash);
    /// @notice Two headers of this number were shown already.
    error AlreadySlashed(uint64 number);
    /// @notice Header `which` (1 or 2) does not bear the sequencer's signature in this domain.
    error BadSequencerSignature(uint256 which);
    /// @notice L1 made a header between the two, or below the promise: the sequencer is excused.
    error Excused(uint64 number);
    /// @notice An accusation comes with exactly `ACCUSATION_STAKE`.
    error WrongStake(uint256 given);
    /// @notice The headers up to the promise's number are not posted yet: wait.
    error PromiseNotDue(uint64 headNumber, uint64 sealBy);
    /// @notice The envelope was the matter of an accusation that names the same number or a lower one.
    error AlreadyAccused(bytes32 envelopeId, uint64 sealBy);
    /// @notice The promise does not bear the sequencer's signature in this domain.
    error BadPromise();
    /// @notice No accusation about this envelope is open.
    error NoOpenAccusation(bytes32 envelopeId);
    /// @notice The header is not in the posted run that is named.
    error NotInRun(uint64 number);
    /// @notice The batch comes after the number that the promise names.
    error SealedTooLate(uint64 number, uint64 sealBy);
    /// @notice The envelope is not at that index of the batch, or not with that hash and code.
    error NotInBatch(uint64 number, uint256 index);
    /// @notice The accusation can be answered up to this L1 block.
    error AnswerWindowOpen(uint256 until);

    /// @notice Punishes the sequencer for two different headers of one number, both signed by it, by its whole bond,
    /// and opens the way for L1 to make that header (`postL1Header`). Works without a bond too.
    /// Evidence committed to: `keccak256(abi.encode(number, lesser hash, greater hash))`.
    /// @dev The number is marked once and for all, so the same evidence never takes a later bond.
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
        if (equivocatedAt[number] != 0) revert AlreadySlashed(number);
        if (!signedBySequencer(firstHash, firstSignature)) revert BadSequencerSignature(1);
        if (!signedBySequencer(secondHash, secondSignature)) revert BadSequencerSignature(2);
        (uint64 origin, uint64 later) = (first.l1OriginNumber, second.l1OriginNumber);
        if (origin > later) (origin, later) = (later, origin);
        if (l1MadeBelow(number, origin, later)) revert Excused(number);
        reveal(
            firstHash < secondHash
                ? keccak256(abi.encode(number, firstHash, secondHash))
                : keccak256(abi.encode(number, secondHash, firstHash)),
            salt
        );

        equivocatedAt[number] = block.number;
        (uint256 burnt, uint256 reward) = slash(msg.sender);
        emit Equivocation(number, msg.sender, firstHash, secondHash, burnt, reward);
    }

    /// @notice Says, with `ACCUSATION_STAKE`, that the sequencer left out an envelope that it promised to seal up to
    /// `sealBy`. Evidence committed to: `keccak256(abi.encode(envelopeId, sealBy))`.
    /// @dev An honest sequencer gives one promise for an envelope. A dishonest one could give a later one to a friend,
    /// whose accusation it then answers, so a promise with a lower number takes the place of an earlier accusation:
    /// the friend has its stake back, and the window to answer goes on if it was open.
    /// @param signature The sequencer's, over the `Promise`.
    function accuseOmission(bytes32 envelopeId, uint64 sealBy, bytes calldata signature, bytes32 salt)
        external
        payable
    {
        if (msg.value != ACCUSATION_STAKE) revert WrongStake(msg.value);
        if (head.number < sealBy) revert PromiseNotDue(head.number, sealBy);
        if (!signedBySequencer(Promises.hash(envelopeId, sealBy), signature)) revert BadPromise();
        if (l1MadeBetween(sealBy > MAX_LIFETIME ? sealBy - MAX_LIFETIME : 0, sealBy)) revert Excused(sealBy);
        reveal(keccak256(abi.encode(envelopeId, sealBy)), salt);

        Accusation memory earlier = accusations[envelopeId];
        if (earlier.state == State.Slashed || (earlier.state != State.None && sealBy >= earlier.sealBy)) {
            revert AlreadyAccused(envelopeId, earlier.sealBy);
        }
        uint64 accusedAt = uint64(block.number);
        if (earlier.state == State.Open) {
            rewards[earlier.accuser] += ACCUSATION_STAKE;
            accusedAt = earlier.accusedAt;
        } else {
            openAccusations += 1;
        }
        accusations[envelopeId] =
            Accusation({ accuser: msg.sender, sealBy: sealBy, state: State.Open, accusedAt: accusedAt });
        emit Accused(envelopeId, msg.sender, sealBy, uint256(accusedAt) + answerWindow);
    }

    /// @notice Answers an accusation by showing the envelope in a posted batch up to the promised number, whatever the
    /// validity rule said about it. Anyone may, and gets the stake; in time as long as the bond is not slashed.
    /// @param header Header of the batch, in `run` by `headerProof`.
    /// @param index The item's place in the batch; its leaf is in the batch's envelope tree by `itemProof`.
    function answerOmission(
        bytes32 envelopeId,
        BatchHeader calldata header,
        RunReference calldata run,
        bytes32[] calldata headerProof,
        uint256 index,
        bytes32 itemHash,
        uint8 code,
        bytes32[] calldata itemProof
    ) external {
        Accusation storage accusation = accusations[envelopeId];
        if (accusation.state != State.Open) revert NoOpenAccusation(envelopeId);
        if (header.number > accusation.sealBy) revert SealedTooLate(header.number, accusation.sealBy);
        requirePosted(header, run, headerProof);
        bytes32 leaf = EnvelopeTree.leaf(envelopeId, itemHash, code);
        if (!MerkleTree.verify(header.envelopeRoot, header.envelopeCount, index, leaf, itemProof)) {
            revert NotInBatch(header.number, index);
        }

        accusation.state = State.Answered;
        openAccusations -= 1;
        rewards[msg.sender] += ACCUSATION_STAKE;
        emit Answered(envelopeId, msg.sender, header.number, index, code);
    }

    /// @notice Takes the bond for an accusation that nobody answered in time. Anyone may; the accuser gets half of the
    /// bond and its stake, the rest is burnt.
    function slashOmission(bytes32 envelopeId) external {
        Accusation storage accusation = accusations[envelopeId];
        if (accusation.state != State.Open) revert NoOpenAccusation(envelopeId);
        uint256 until = uint256(accusation.accusedAt) + answerWindow;
        if (block.number <= until) revert AnswerWindowOpen(until);

        accusation.state = State.Slashed;
        openAccusations -= 1;
        address accuser = accusation.accuser;
        (uint256 burnt, uint256 reward) = slash(accuser);
        rewards[accuser] += ACCUSATION_STAKE;
        emit Omission(envelopeId, accuser, burnt, reward);
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
