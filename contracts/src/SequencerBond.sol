// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "./CommitReveal.sol";
import { PostedHeaders } from "./PostedHeaders.sol";
import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { Domain } from "./libraries/Domain.sol";
import { Secp256k1 } from "./libraries/Secp256k1.sol";

/// @title The sequencers' bonds and the rewards of those who report them
/// @notice Every key that the CommitteeRegistry ever named has a bond of its own and answers with it for what it signed,
/// whenever that is shown. Ether enters as bond or as a stake; it leaves as a sequencer's announced withdrawal, as a
/// claimed reward, or burnt. Of a slashed bond at least half is burnt, so that reporting oneself gains nothing.
///
/// **What `bondOf` shows can be slashed by whoever looks at it now.** An announced withdrawal no longer counts as bond
/// and waits: seven days after the announcement and, unless another key's time had come by then, after the last certified
/// posting, so that what the sequencer signed before can be posted and shown; open accusations hold it, too. After three
/// weeks it lapses and counts as bond again. A slash takes everything, announced or not.
abstract contract SequencerBond is PostedHeaders, CommitReveal {
    /// @notice How long an announced withdrawal waits, open to slashing all the while, after it was announced and after
    /// certified headers were last posted.
    uint64 public constant WITHDRAWAL_DELAY_SECONDS = 7 days;
    /// @notice How long after it was announced a withdrawal lapses.
    uint64 public constant ANNOUNCEMENT_LIFETIME_SECONDS = 21 days;

    /// @dev A withdrawal of a bond that waits.
    struct Withdrawal {
        uint128 amount;
        uint64 announcedAt;
        /// The head's L1 origin by then.
        uint64 headOrigin;
    }

    /// @dev What a sequencer has at stake.
    struct Account {
        /// Its ether, announced or not.
        uint128 staked;
        /// Accusations of it that wait for an answer; while there are any, its bond stays.
        uint64 openAccusations;
        /// The L1 block in which it was slashed last.
        uint64 slashedAt;
        /// The announcement made last, lapsed or not.
        Withdrawal announcement;
    }

    /// @notice The committees, and whose signature stands under the headers.
    ICommitteeRegistry public immutable registry;
    /// @notice Separator of the deployment's domain.
    bytes32 public immutable domainSeparator;
    /// @dev The BlindedInbox: this contract, or the one on whose storage its code runs.
    address private immutable inbox;

    mapping(address sequencer => Account) private accounts;
    /// @notice Accusations of all sequencers that wait for an answer.
    uint256 public openAccusations;
    /// @notice Rewards that wait to be claimed.
    mapping(address reporter => uint256 amount) public rewards;

    /// @notice The sequencer's bond grew.
    event BondDeposited(address indexed sequencer, address indexed from, uint256 amount, uint256 bond);
    /// @notice The sequencer announced that it will take out `amount` (0 takes an announcement back), after the last
    /// certified posting and not after the second `expiresAt`; until then it does not count as bond.
    event BondWithdrawalAnnounced(address indexed sequencer, uint256 amount, uint256 expiresAt);
    /// @notice The sequencer took out `amount`.
    event BondWithdrawn(address indexed sequencer, address indexed to, uint256 amount, uint256 bond);
    /// @notice `reporter` took its reward.
    event RewardClaimed(address indexed reporter, uint256 amount);

    /// @notice A deposit or claim of nothing.
    error ZeroAmount();
    /// @notice More than was deposited.
    error AmountAboveBond(uint256 amount, uint256 deposited);
    /// @notice No withdrawal is announced, or the announcement lapsed: announce again.
    error NoWithdrawalAnnounced();
    /// @notice The announced withdrawal still waits.
    error WithdrawalLocked(uint256 unlocksAt);
    /// @notice This many accusations are open: answer them, or wait until they are settled.
    error AccusationsOpen(uint256 count);
    /// @notice A transfer of ether failed.
    error TransferFailed(address to);
    /// @notice This contract has no funds and no headers of its own: call the BlindedInbox.
    error NotTheInbox();

    /// @param inbox_ The BlindedInbox, in whose domain everything is signed.
    constructor(ICommitteeRegistry registry_, address inbox_) {
        registry = registry_;
        inbox = inbox_;
        domainSeparator = Domain.separator(block.chainid, inbox_);
    }

    /// @dev No ether enters SequencerFaults, whose code only serves the BlindedInbox.
    modifier onlyInInbox() {
        if (address(this) != inbox) revert NotTheInbox();
        _;
    }

    /// @inheritdoc IBlindedInbox
    function sequencer() external view override returns (address) {
        return registry.sequencerAt(uint64(block.number));
    }

    /// @notice A sequencer's bond in wei, without what is announced to be taken out (B-1, B-2).
    function bondOf(address sequencer_) public view returns (uint256) {
        (uint128 amount,,) = withdrawalOf(sequencer_);
        return accounts[sequencer_].staked - amount;
    }

    /// @notice A sequencer's announced withdrawal: from the second `unlocksAt` on, before `expiresAt`, unless certified
    /// headers are posted meanwhile that it might have signed. All zero for none.
    function withdrawalOf(address sequencer_)
        public
        view
        returns (uint128 amount, uint64 unlocksAt, uint64 expiresAt)
    {
        Withdrawal memory given = accounts[sequencer_].announcement;
        expiresAt = given.announcedAt + ANNOUNCEMENT_LIFETIME_SECONDS;
        if (given.amount == 0 || block.timestamp >= expiresAt) return (0, 0, 0);
        uint64 since = given.announcedAt;
        // A key whose last origin was behind the head's, when it announced, had nothing left to post, and was not named
        // since.
        bool over = registry.sequencerUntil(sequencer_) < given.headOrigin;
        if (!over && since < lastCertifiedTime) since = lastCertifiedTime;
        return (given.amount, since + WITHDRAWAL_DELAY_SECONDS, expiresAt);
    }

    /// @inheritdoc IBlindedInbox
    function slashedAt(address sequencer_) external view override returns (uint64) {
        return accounts[sequencer_].slashedAt;
    }

    /// @notice Adds to a sequencer's bond, named or not yet. Anyone may; only that sequencer can take it out.
    function depositBond(address sequencer_) external payable onlyInInbox {
        if (msg.value == 0) revert ZeroAmount();
        accounts[sequencer_].staked += uint128(msg.value); // no more ether exists
        emit BondDeposited(sequencer_, msg.sender, msg.value, bondOf(sequencer_));
    }

    /// @notice Announces that `amount` of the caller's bond will be taken out. Replaces an earlier announcement and
    /// starts the delay anew; 0 takes it back.
    function announceBondWithdrawal(uint128 amount) external {
        Account storage account = accounts[msg.sender];
        if (amount > account.staked) revert AmountAboveBond(amount, account.staked);
        account.announcement = Withdrawal({
            amount: amount, announcedAt: uint64(block.timestamp), headOrigin: head.l1OriginNumber
        });
        emit BondWithdrawalAnnounced(msg.sender, amount, block.timestamp + ANNOUNCEMENT_LIFETIME_SECONDS);
    }

    /// @notice Takes out the announced amount after the delay, when no accusation is open (B-3, B-4).
    function withdrawBond(address payable to) external {
        Account storage account = accounts[msg.sender];
        (uint128 amount, uint64 unlocksAt,) = withdrawalOf(msg.sender);
        if (amount == 0) revert NoWithdrawalAnnounced();
        if (block.timestamp < unlocksAt) revert WithdrawalLocked(unlocksAt);
        if (account.openAccusations != 0) revert AccusationsOpen(account.openAccusations);
        delete account.announcement;
        account.staked -= amount;
        emit BondWithdrawn(msg.sender, to, amount, account.staked);
        send(to, amount);
    }

    /// @notice Pays out the caller's rewards.
    function claimReward() external {
        uint256 amount = rewards[msg.sender];
        if (amount == 0) revert ZeroAmount();
        rewards[msg.sender] = 0;
        emit RewardClaimed(msg.sender, amount);
        send(payable(msg.sender), amount);
    }

    /// @dev Takes all that the sequencer deposited, which may be nothing: half is burnt, rounded up, half is `reporter`'s.
    function slash(address sequencer_, address reporter) internal returns (uint256 burnt, uint256 reward) {
        Account storage account = accounts[sequencer_];
        uint256 slashed = account.staked;
        account.staked = 0;
        account.slashedAt = uint64(block.number);
        delete account.announcement;
        reward = slashed / 2;
        burnt = slashed - reward;
        rewards[reporter] += reward;
        send(payable(address(0)), burnt);
    }

    /// @dev Counts an accusation of a sequencer that was opened.
    function accusationOpened(address sequencer_) internal {
        openAccusations += 1;
        accounts[sequencer_].openAccusations += 1;
    }

    /// @dev Counts one that was answered or settled.
    function accusationClosed(address sequencer_) internal {
        openAccusations -= 1;
        accounts[sequencer_].openAccusations -= 1;
    }

    /// @dev Who signed the struct with this hash: a key that is or was the sequencer's, or the zero address.
    function signingSequencer(bytes32 structHash, bytes calldata signature) internal view returns (address) {
        address signer = Secp256k1.recover(Domain.digest(domainSeparator, structHash), signature);
        return registry.sequencerUntil(signer) == 0 ? address(0) : signer;
    }

    function send(address payable to, uint256 amount) private {
        (bool sent,) = to.call{ value: amount }("");
        if (!sent) revert TransferFailed(to);
    }
}
