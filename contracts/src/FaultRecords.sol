// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { SequencerBond } from "./SequencerBond.sol";

/// @title What is remembered of the sequencer's faults, and how reports of them end
/// @dev Shared by BlindedInbox, whose storage this is, and SequencerFaults, whose code works on it.
abstract contract FaultRecords is SequencerBond {
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

    /// @notice A promise, and who gave it.
    struct GivenPromise {
        /// Whose signature it bears.
        address sequencer;
        /// The envelope that was promised, and the item's hash.
        bytes32 envelopeId;
        bytes32 itemHash;
        /// The last batch number that would keep it.
        uint64 sealBy;
    }

    /// @notice An accusation of having broken one promise.
    struct Accusation {
        address accuser;
        State state;
        /// The L1 block from which the window to answer is counted.
        uint64 accusedAt;
    }

    /// @notice The L1 block in which two headers of a number were first shown; 0 where none were.
    mapping(uint64 number => uint256 l1Block) public equivocatedAt;
    /// @notice The two headers of a number that were shown with a key's signature, by `keccak256(abi.encode(number, lesser
    /// hash, greater hash))`: they are no new fault of that key. Each of them beside a third one is, and what another key
    /// signed says nothing of this one.
    mapping(address signer => mapping(bytes32 evidence => bool)) public shownTogether;
    /// @notice The accusation of having broken a promise. A sequencer's promise is known by its id,
    /// `keccak256(abi.encode(sequencer, promiseHash))` with `hashStruct` of the `Promise`.
    mapping(bytes32 promiseId => Accusation) public accusations;

    /// @notice The sequencer signed two headers for `number` and lost its bond.
    event Equivocation(
        uint64 indexed number,
        address indexed sequencer,
        address indexed reporter,
        bytes32 firstHash,
        bytes32 secondHash,
        uint256 burnt,
        uint256 reward
    );
    /// @notice The sequencer is said to have broken the promise to seal an envelope up to `sealBy`. Without an answer it
    /// loses its bond after the L1 block `answerUntil`.
    event Accused(
        bytes32 indexed promiseId,
        bytes32 indexed envelopeId,
        address indexed accuser,
        address sequencer,
        bytes32 itemHash,
        uint64 sealBy,
        uint256 answerUntil
    );
    /// @notice The promised item stands in batch `number` at `index`; the stake is the answerer's.
    event Answered(
        bytes32 indexed promiseId, address indexed answerer, uint64 number, uint256 index, uint8 code
    );
    /// @notice Nobody answered; the sequencer lost its bond and the accuser has its stake back.
    event Omission(bytes32 indexed promiseId, address indexed accuser, uint256 burnt, uint256 reward);

    /// @notice The two headers are of different numbers.
    error DifferentNumbers(uint64 first, uint64 second);
    /// @notice The two headers are the same.
    error SameHeader(bytes32 headerHash);
    /// @notice These two headers were shown already with this signer's signature.
    error AlreadySlashed(uint64 number);
    /// @notice Header `which` does not bear a signature, in this domain, of a key that is or was the sequencer's (1), or
    /// not of the same as the first (2).
    error BadSequencerSignature(uint256 which);
    /// @notice L1 made a header between the two, or below the promise, or one of the two was too old to be posted before
    /// any was: the sequencer is excused.
    error Excused(uint64 number);
    /// @notice An accusation comes with exactly `ACCUSATION_STAKE`.
    error WrongStake(uint256 given);
    /// @notice The headers up to the promise's number are not posted yet: wait.
    error PromiseNotDue(uint64 headNumber, uint64 sealBy);
    /// @notice The promise was the matter of an accusation already.
    error AlreadyAccused(bytes32 promiseId);
    /// @notice The promise does not bear a signature, in this domain, of a key that is or was the sequencer's.
    error BadPromise();
    /// @notice No accusation of having broken this promise is open.
    error NoOpenAccusation(bytes32 promiseId);
    /// @notice The header is not in the posted run that is named.
    error NotInRun(uint64 number);
    /// @notice The batch comes after the number that the promise names.
    error SealedTooLate(uint64 number, uint64 sealBy);
    /// @notice The item is not at that index of the batch, or not with that code.
    error NotInBatch(uint64 number, uint256 index);
    /// @notice The item stands in the batch with a verdict that does not keep the promise.
    error PromiseNotKept(uint8 code);
    /// @notice The accusation can be answered up to this L1 block.
    error AnswerWindowOpen(uint256 until);
}
