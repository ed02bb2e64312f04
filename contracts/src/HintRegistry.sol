// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "./CommitReveal.sol";
import { Challenge, FinalHint, HintEvidence, PlaintextProof } from "./HintEvidence.sol";
import { HintJudge } from "./HintJudge.sol";
import { IBlindedInbox, RunReference, Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { IHintRoots } from "./interfaces/IHintRoots.sol";
import { IHintVerifier } from "./interfaces/IHintVerifier.sol";
import { HintBlobs } from "./libraries/HintBlobs.sol";
import { HintData } from "./libraries/HintData.sol";

/// @title Hints of posted runs, their bonds and their disputes
/// @notice A publisher posts the hints of a run with all their data in the transaction, as calldata (`postHints`) or in
/// blobs (`postHintsInBlobs`). **One bond answers for all its open postings**, however many. For `challengeWindow`
/// blocks anyone may show one wrong entry, which this contract settles in one call: the publisher loses its whole bond,
/// half of it burnt, half the challenger's; the posting is *slashed*, and every other open posting of that publisher
/// is *invalidated* at once, since no bond answers for it any more. An invalidated posting is never final, blocks
/// nothing, and anyone may `drop` it. What stands is made final, once and for all. Several postings may be open for one
/// run, so a wrong first one blocks nobody. A run that has no hints `hintDeadline` blocks after it was posted can be
/// declared void.
///
/// Others relied on a posting that a slashing takes away: a false one kept them from posting right hints, and those
/// that it invalidates may have been right. No run that a slashing took a posting from is void before another
/// `hintDeadline` blocks passed: time to post right hints.
///
/// What each entry must be follows from the posted header alone: the committee certified every item's verdict with
/// the envelope root, and C fixes the session key and the singleton release. So there is exactly one right list of
/// entries for a run, up to the places at which the releases of malformed ciphertexts stand: right entries with the
/// releases in another order, or with some that no entry names, are another posting.
///
/// **An entry that calls a ciphertext malformed names its singleton release, and is wrong without the right one**,
/// whatever the ciphertext is (S-1 to S-3). Nobody has that of a run that the committee did not release: so nothing can
/// be made final for it that its keys would refute and nobody else, it gets void, and the chain goes on (S-4).
///
/// Nobody loses a bond by malformed input: only a completed comparison slashes a posting; everything else reverts,
/// the stake and the commitment with it. That covers the verifier too: a call that fails, for want of gas say, is
/// never read as an answer.
///
/// Ether held = sum of `publishers[…].bond` + sum of `rewards[…]`. Stakes stay here for the length of a call only.
/// @dev Storage, after `CommitReveal.committedAt`; times are L1 block numbers:
///
/// | variable | slots |
/// |---|---|
/// | `postingCount` | 1: the newest id |
/// | `postings[id]` | 2: publisher 20 ‖ run's last number 8 ‖ block 4; posting root. Zero if slashed, released, dropped |
/// | `runs[last]` | 1: first number 8 ‖ final posting 8 ‖ postings not closed 4 ‖ void 1 ‖ last slashing 4 |
/// | `openRoots[keccak256(last, root)]` | 1: the posting of that root for that run that is not closed |
/// | `publishers[publisher]` | 1: bond 16 ‖ open postings 4 ‖ slashed below 8 ‖ slashed at 4 |
/// | `rewards[account]` | 1 |
///
/// A posting is *closed* when it is its run's final one, or has no publisher any more; *invalidated* when it is not
/// closed and its id is below its publisher's `slashedBelow`; *open* when it is neither. Ids are never used again.
contract HintRegistry is CommitReveal, HintEvidence, IHintRoots {
    /// @notice Hints that somebody posted for a run.
    struct Posting {
        /// Who posted them, and whose bond answers for them.
        address publisher;
        /// Last number of the run.
        uint64 runLast;
        /// The L1 block of the posting.
        uint32 postedAt;
        /// Commitment to all entries; see HintData and HintBlobs.
        bytes32 root;
    }

    /// @notice What became of a run.
    struct Run {
        /// Its first number; 0 before the first posting.
        uint64 first;
        /// The posting that is final; 0 for none.
        uint64 finalPosting;
        /// How many postings are open, or invalidated and not dropped.
        uint32 open;
        /// Whether it was declared void.
        bool isVoid;
        /// The L1 block of the newest slashing of a posting of this run, or of one of its publisher's that invalidated
        /// a posting of this run, which was dropped since; 0 for none.
        uint32 slashedAt;
    }

    /// @notice What answers for a publisher's postings.
    struct Publisher {
        /// Its bond, in wei; at least `publisherBond` while a posting is open.
        uint128 bond;
        /// How many of its postings are open.
        uint32 open;
        /// Postings of smaller id are invalidated or closed.
        uint64 slashedBelow;
        /// The L1 block in which it was slashed last; 0 for never.
        uint32 slashedAt;
    }

    /// @notice The headers.
    IBlindedInbox public immutable inbox;
    /// @notice The encryption keys.
    ICommitteeRegistry public immutable registry;
    /// @notice The check of one hint.
    IHintVerifier public immutable verifier;
    /// @notice What disputed entries must be.
    HintJudge public immutable judge;
    /// @notice The least bond of a publisher that has postings open, in wei.
    uint128 public immutable publisherBond;
    /// @notice What a challenger puts up, in wei.
    uint128 public immutable challengeStake;
    /// @notice How long hints can be challenged at least, in L1 blocks.
    uint32 public immutable challengeWindow;
    /// @notice How long after its posting a run without hints can be declared void, in L1 blocks.
    uint32 public immutable hintDeadline;

    /// @notice How many postings there ever were; ids are from 1.
    uint64 public postingCount;
    /// @notice The postings that are open, invalidated or final.
    mapping(uint64 id => Posting) public postings;
    /// @notice What became of the run that ends at a number.
    mapping(uint64 runLast => Run) public runs;
    /// @dev By `keccak256(abi.encode(runLast, root))`: the posting, open or invalidated; 0 for none.
    mapping(bytes32 key => uint64 id) private openRoots;
    /// @notice What answers for a publisher's postings.
    mapping(address publisher => Publisher) public publishers;
    /// @notice Rewards that wait to be claimed.
    mapping(address account => uint256 amount) public rewards;

    /// @notice A publisher's bond grew.
    event BondDeposited(address indexed publisher, uint256 amount, uint256 total);
    /// @notice A publisher took out a part of its bond.
    event BondWithdrawn(address indexed publisher, uint256 amount, uint256 total);
    /// @notice Hints of a run; the data are in the input of this transaction, or in its blobs and the index in its input.
    event HintsPosted(
        uint64 indexed id, uint64 indexed runLast, address indexed publisher, uint64 first, bytes32 root
    );
    /// @notice A posting was wrong at `number` and `index`, for one of the `REASON_…`s. All other postings of
    /// `publisher` that were open before this event are invalidated.
    event HintsSlashed(
        uint64 indexed id,
        uint64 indexed runLast,
        address indexed challenger,
        address publisher,
        uint8 reason,
        uint64 number,
        uint32 index,
        uint256 reward,
        uint256 burnt
    );
    /// @notice A challenge showed nothing wrong; its stake went to the publisher.
    event ChallengeFailed(uint64 indexed id, address indexed challenger);
    /// @notice These are the run's hints for good.
    event HintsFinalized(uint64 indexed id, uint64 indexed runLast, uint64 first, bytes32 root);
    /// @notice A posting of a run that has others for good was closed.
    event HintsReleased(uint64 indexed id, uint64 indexed runLast);
    /// @notice An invalidated posting was cleared away.
    event HintsDropped(uint64 indexed id, uint64 indexed runLast);
    /// @notice The run has no hints and will never have any.
    event Voided(uint64 indexed first, uint64 indexed last);
    /// @notice An account took its rewards.
    event RewardClaimed(address indexed account, uint256 amount);

    /// @notice A publisher's bond of at least 2 wei, so that half of it is something, and a stake are needed.
    error ZeroBondOrStake();
    /// @notice The call comes from a contract, or from an account that delegates to one.
    error NotTopLevel();
    /// @notice A deposit, withdrawal or claim of nothing.
    error ZeroAmount();
    /// @notice The bond, or the part of it that may be taken out, is less: deposit more, or wait until postings are
    /// closed.
    error BondTooLow(uint256 available, uint256 needed);
    /// @notice The run was not posted to the inbox.
    error RunNotPosted(uint64 last);
    /// @notice The run has its final hints.
    error RunIsFinal(uint64 last, uint64 id);
    /// @notice The run was declared void.
    error RunIsVoid(uint64 last);
    /// @notice The run has this many postings that are not settled yet: challenge, finalize or, if invalidated, drop
    /// them.
    error PostingsOpen(uint64 last, uint256 count);
    /// @notice The same hints are open for this run already.
    error SameHintsOpen(uint64 last, bytes32 root);
    /// @notice The posting does not exist, was slashed, released or dropped, or is final.
    error NotOpen(uint64 id);
    /// @notice The posting is invalidated: another one of its publisher was slashed, no bond answers for it. Drop it.
    error PublisherSlashed(uint64 id);
    /// @notice The posting is not invalidated: challenge it, finalize it or release it.
    error NotInvalidated(uint64 id);
    /// @notice Not before this L1 block.
    error TooEarly(uint256 fromBlock);
    /// @notice A challenge needs exactly this stake.
    error WrongStake(uint256 given, uint256 needed);
    /// @notice A transfer of ether failed.
    error TransferFailed(address to);

    /// @param inbox_ The BlindedInbox, whose deadlines hold here.
    /// @param registry_ Its CommitteeRegistry.
    /// @param verifier_ The check of one hint.
    /// @param publisherBond_ What a publisher with open postings has at least, in wei: more than twice the gas of the
    /// worst challenge, and what it should cost to invalidate a publisher's right postings.
    /// @param challengeStake_ What a challenger puts up, in wei.
    constructor(
        IBlindedInbox inbox_,
        ICommitteeRegistry registry_,
        IHintVerifier verifier_,
        uint128 publisherBond_,
        uint128 challengeStake_
    ) {
        if (publisherBond_ < 2 || challengeStake_ == 0) revert ZeroBondOrStake();
        Timing memory timing = inbox_.timing();
        inbox = inbox_;
        registry = registry_;
        verifier = verifier_;
        judge = new HintJudge(inbox_, registry_, verifier_);
        publisherBond = publisherBond_;
        challengeStake = challengeStake_;
        challengeWindow = timing.challengeWindow;
        hintDeadline = timing.hintDeadline;
    }

    // Bonds and rewards

    /// @notice Adds to the caller's bond.
    function depositBond() external payable {
        if (msg.value == 0) revert ZeroAmount();
        Publisher storage publisher = publishers[msg.sender];
        // All ether there is fits 128 bits.
        publisher.bond += uint128(msg.value);
        emit BondDeposited(msg.sender, msg.value, publisher.bond);
    }

    /// @notice Takes out of the bond what is above `publisherBond` while postings are open, anything otherwise.
    function withdrawBond(uint128 amount) external {
        if (amount == 0) revert ZeroAmount();
        (uint128 total, uint128 locked) = bondOf(msg.sender);
        if (amount > total - locked) revert BondTooLow(total - locked, amount);
        publishers[msg.sender].bond = total - amount;
        emit BondWithdrawn(msg.sender, amount, total - amount);
        send(msg.sender, amount);
    }

    /// @notice Pays out the caller's rewards.
    function claimReward() external {
        uint256 amount = rewards[msg.sender];
        if (amount == 0) revert ZeroAmount();
        rewards[msg.sender] = 0;
        emit RewardClaimed(msg.sender, amount);
        send(msg.sender, amount);
    }

    /// @notice A publisher's bond, and how much of it must stay while its postings are open.
    function bondOf(address publisher) public view returns (uint128 total, uint128 locked) {
        Publisher storage given = publishers[publisher];
        return (given.bond, given.open == 0 ? 0 : publisherBond);
    }

    // Postings

    /// @notice Posts the hints of a run, for which the caller's bond of at least `publisherBond` answers as for all its
    /// other postings. Called by plain accounts directly, so the data are found in the transaction's input. An
    /// invalidated posting of the same hints is dropped.
    /// @param run A posted run that is neither void nor has its final hints.
    /// @param data A `HintData` for exactly the run's batches; see the library.
    /// @return id The posting.
    function postHints(RunReference calldata run, bytes calldata data) external returns (uint64 id) {
        requirePostable(run);
        return post(run, HintData.postingRoot(data, run.first, run.last));
    }

    /// @notice Posts the hints of a run like `postHints`, with their data in the blobs of the transaction, which cost a
    /// fraction of calldata and which nodes keep longer than any challenge takes.
    /// @param run A posted run that is neither void nor has its final hints.
    /// @param index The index of these hints, for exactly the run's batches; see HintBlobs.
    /// @return id The posting.
    function postHintsInBlobs(RunReference calldata run, bytes calldata index) external returns (uint64 id) {
        requirePostable(run);
        return post(run, HintBlobs.postingRoot(index, run.first, run.last));
    }

    /// @dev A plain account calls, and the run was posted and is neither void nor has its final hints.
    function requirePostable(RunReference calldata run) private view {
        if (msg.sender != tx.origin || msg.sender.code.length != 0) revert NotTopLevel();
        if (!inbox.isRun(run)) revert RunNotPosted(run.last);
        unsettled(run.last);
    }

    /// @dev Opens a posting of the caller with this root.
    function post(RunReference calldata run, bytes32 root) private returns (uint64 id) {
        bytes32 key = openKey(run.last, root);
        uint64 twin = openRoots[key];
        if (twin != 0) {
            if (isOpen(twin)) revert SameHintsOpen(run.last, root);
            drop(twin);
        }
        Publisher storage publisher = publishers[msg.sender];
        if (publisher.bond < publisherBond) revert BondTooLow(publisher.bond, publisherBond);

        publisher.open++;
        Run storage state = runs[run.last];
        state.first = run.first;
        state.open++;
        id = ++postingCount;
        openRoots[key] = id;
        postings[id] =
            Posting({ publisher: msg.sender, runLast: run.last, postedAt: uint32(block.number), root: root });
        emit HintsPosted(id, run.last, msg.sender, run.first, root);
    }

    /// @notice Disputes one entry of an open posting. Needs `challengeStake` and a commitment of an earlier block to
    /// `keccak256(abi.encode(id, number, index))`.
    /// @dev An entry that is right costs the stake; an entry that is wrong costs the publisher its bond and all its open
    /// postings; anything that cannot be judged reverts, and so does an invalidated posting, which harms nobody: the
    /// stake stays with the challenger who comes second. Allowed after the window too, as long as the posting is open.
    function challenge(uint64 id, Challenge calldata given, bytes32 salt) external payable {
        if (msg.value != challengeStake) revert WrongStake(msg.value, challengeStake);
        Posting memory posting = opened(id);
        reveal(keccak256(abi.encode(id, given.header.number, given.index)), salt);
        uint8 reason = judge.judge(id, posting.runLast, posting.root, given);
        if (reason == 0) {
            rewards[posting.publisher] += msg.value;
            emit ChallengeFailed(id, msg.sender);
            return;
        }

        close(posting);
        delete postings[id];
        runs[posting.runLast].slashedAt = uint32(block.number);
        uint256 bond = publishers[posting.publisher].bond;
        publishers[posting.publisher] =
            Publisher({ bond: 0, open: 0, slashedBelow: postingCount + 1, slashedAt: uint32(block.number) });
        uint256 reward = bond / 2;
        uint256 burnt = bond - reward;
        rewards[msg.sender] += reward + msg.value;
        emit HintsSlashed(
            id,
            posting.runLast,
            msg.sender,
            posting.publisher,
            reason,
            given.header.number,
            given.index,
            reward,
            burnt
        );
        send(address(0), burnt);
    }

    /// @notice Makes a posting its run's hints for good, `challengeWindow` blocks after it was posted.
    function finalize(uint64 id) external {
        Posting memory posting = opened(id);
        uint256 from = uint256(posting.postedAt) + challengeWindow;
        if (block.number < from) revert TooEarly(from);
        uint64 first = unsettled(posting.runLast).first;
        close(posting);
        publishers[posting.publisher].open--;
        runs[posting.runLast].finalPosting = id;
        emit HintsFinalized(id, posting.runLast, first, posting.root);
    }

    /// @notice Closes a posting whose window is over and whose run has other hints for good: its publisher's bond need
    /// not answer for it any more.
    function release(uint64 id) external {
        Posting memory posting = opened(id);
        uint256 from = uint256(posting.postedAt) + challengeWindow;
        if (block.number < from) revert TooEarly(from);
        if (runs[posting.runLast].finalPosting == 0) revert RunNotFinal(posting.runLast);
        close(posting);
        publishers[posting.publisher].open--;
        delete postings[id];
        emit HintsReleased(id, posting.runLast);
    }

    /// @notice Clears an invalidated posting away.
    function drop(uint64 id) public {
        Posting memory posting = unclosed(id);
        if (!isInvalidated(id, posting.publisher)) revert NotInvalidated(id);
        close(posting);
        delete postings[id];
        // The newest slashing of its publisher's: of several the later ones cost a bond each, too.
        Run storage state = runs[posting.runLast];
        uint32 slashedAt = publishers[posting.publisher].slashedAt;
        if (slashedAt > state.slashedAt) state.slashedAt = slashedAt;
        emit HintsDropped(id, posting.runLast);
    }

    /// @notice Declares a run void that has no hints, final or open, `hintDeadline` blocks after it was posted, and
    /// after the last slashing that took hints of it away. Invalidated postings of it must have been dropped (VR-1).
    function voidUnreleased(RunReference calldata run) external {
        if (!inbox.isRun(run)) revert RunNotPosted(run.last);
        Run memory state = unsettled(run.last);
        uint256 since = run.postedAt > state.slashedAt ? run.postedAt : state.slashedAt;
        uint256 from = since + hintDeadline;
        if (block.number < from) revert TooEarly(from);
        if (state.open != 0) revert PostingsOpen(run.last, state.open);
        runs[run.last].isVoid = true;
        emit Voided(run.first, run.last);
    }

    /// @notice The posting that is final for the run that ends at `runLast`; 0 for none.
    function finalPosting(uint64 runLast) external view returns (uint64) {
        return runs[runLast].finalPosting;
    }

    /// @notice See `PlaintextReader`.
    function provePlaintext(PlaintextProof calldata) external view returns (bytes32, bytes memory) {
        ask();
    }

    /// @notice See `PlaintextReader`.
    function readPlaintext(PlaintextProof calldata, FinalHint calldata)
        external
        view
        returns (bytes32, bytes memory)
    {
        ask();
    }

    /// @inheritdoc IHintRoots
    function finalRoot(uint64 runLast) public view override returns (bytes32) {
        // There is no posting 0, so its root is zero.
        return postings[runs[runLast].finalPosting].root;
    }

    /// @notice Whether a posting can be challenged.
    function isOpen(uint64 id) public view returns (bool) {
        return isUnclosed(id) && !isInvalidated(id, postings[id].publisher);
    }

    // Inside

    /// @dev An open posting.
    function opened(uint64 id) private view returns (Posting memory posting) {
        posting = unclosed(id);
        if (isInvalidated(id, posting.publisher)) revert PublisherSlashed(id);
    }

    /// @dev A posting that is open or invalidated.
    function unclosed(uint64 id) private view returns (Posting memory) {
        if (!isUnclosed(id)) revert NotOpen(id);
        return postings[id];
    }

    function isUnclosed(uint64 id) private view returns (bool) {
        Posting storage posting = postings[id];
        return posting.publisher != address(0) && runs[posting.runLast].finalPosting != id;
    }

    /// @dev Whether a posting that is not closed is invalidated.
    function isInvalidated(uint64 id, address publisher) private view returns (bool) {
        return id < publishers[publisher].slashedBelow;
    }

    /// @dev The state of a run that is neither final nor void.
    function unsettled(uint64 runLast) private view returns (Run memory state) {
        state = runs[runLast];
        if (state.finalPosting != 0) revert RunIsFinal(runLast, state.finalPosting);
        if (state.isVoid) revert RunIsVoid(runLast);
    }

    /// @dev Undoes what being posted means for the run: its count, the guard against repetition.
    function close(Posting memory posting) private {
        runs[posting.runLast].open--;
        delete openRoots[openKey(posting.runLast, posting.root)];
    }

    function openKey(uint64 runLast, bytes32 root) private pure returns (bytes32) {
        return keccak256(abi.encode(runLast, root));
    }

    /// @dev Puts the call to the judge, and ends as it ends.
    function ask() private view {
        address asked = address(judge);
        assembly {
            calldatacopy(0, 0, calldatasize())
            let done := staticcall(gas(), asked, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(done) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }

    function send(address to, uint256 amount) private {
        (bool sent,) = to.call{ value: amount }("");
        if (!sent) revert TransferFailed(to);
    }
}
