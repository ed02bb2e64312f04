// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "./CommitReveal.sol";
import { PostedHeaders } from "./PostedHeaders.sol";
import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";
import { Domain } from "./libraries/Domain.sol";
import { Secp256k1 } from "./libraries/Secp256k1.sol";

/// @title The sequencer's bond and the rewards of those who report it
/// @notice Ether enters as bond or as a stake; it leaves as the sequencer's announced withdrawal, as a claimed reward,
/// or burnt. Of a slashed bond at least half is burnt, so that reporting oneself gains nothing.
///
/// **What `bond()` shows can be slashed by whoever looks at it now.** An announced withdrawal no longer counts as bond
/// and waits: seven days after the announcement and after the last certified posting, so that what the sequencer signed
/// before can be posted and shown; open accusations hold it, too. After three weeks it lapses and counts as bond again.
/// A slash takes everything, announced or not.
abstract contract SequencerBond is PostedHeaders, CommitReveal {
    /// @notice How long an announced withdrawal waits, open to slashing all the while, after it was announced and after
    /// certified headers were last posted.
    uint64 public constant WITHDRAWAL_DELAY_SECONDS = 7 days;
    /// @notice How long after it was announced a withdrawal lapses.
    uint64 public constant ANNOUNCEMENT_LIFETIME_SECONDS = 21 days;

    /// @dev A withdrawal of the bond that waits.
    struct Withdrawal {
        uint128 amount;
        uint64 announcedAt;
    }

    /// @inheritdoc IBlindedInbox
    address public immutable override sequencer;
    /// @notice Separator of the deployment's domain.
    bytes32 public immutable domainSeparator;
    /// @dev The BlindedInbox: this contract, or the one on whose storage its code runs.
    address private immutable inbox;

    /// @dev The sequencer's ether, announced or not.
    uint256 private staked;
    /// @dev The announcement made last, lapsed or not.
    Withdrawal private announcement;
    /// @notice Accusations that wait for an answer; while there are any, the bond stays.
    uint256 public openAccusations;
    /// @notice Rewards that wait to be claimed.
    mapping(address reporter => uint256 amount) public rewards;

    /// @notice The bond grew.
    event BondDeposited(address indexed from, uint256 amount, uint256 bond);
    /// @notice The sequencer announced that it will take out `amount` (0 takes an announcement back), after the last
    /// certified posting and not after the second `expiresAt`; until then it does not count as bond.
    event BondWithdrawalAnnounced(uint256 amount, uint256 expiresAt);
    /// @notice The sequencer took out `amount`.
    event BondWithdrawn(address indexed to, uint256 amount, uint256 bond);
    /// @notice `reporter` took its reward.
    event RewardClaimed(address indexed reporter, uint256 amount);

    /// @notice The sequencer is the zero address.
    error ZeroSequencer();
    /// @notice Only the sequencer may do this.
    error NotSequencer(address caller);
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
    constructor(address sequencer_, address inbox_) {
        if (sequencer_ == address(0)) revert ZeroSequencer();
        sequencer = sequencer_;
        inbox = inbox_;
        domainSeparator = Domain.separator(block.chainid, inbox_);
    }

    /// @dev No ether enters SequencerFaults, whose code only serves the BlindedInbox.
    modifier onlyInInbox() {
        if (address(this) != inbox) revert NotTheInbox();
        _;
    }

    /// @notice The sequencer's bond in wei, without what is announced to be taken out.
    function bond() public view returns (uint256) {
        (uint128 amount,,) = withdrawal();
        return staked - amount;
    }

    /// @notice The announced withdrawal: from the second `unlocksAt` on, before `expiresAt`, unless certified headers
    /// are posted meanwhile. All zero for none.
    function withdrawal() public view returns (uint128 amount, uint64 unlocksAt, uint64 expiresAt) {
        Withdrawal memory given = announcement;
        expiresAt = given.announcedAt + ANNOUNCEMENT_LIFETIME_SECONDS;
        if (given.amount == 0 || block.timestamp >= expiresAt) return (0, 0, 0);
        uint64 since = given.announcedAt > lastCertifiedTime ? given.announcedAt : lastCertifiedTime;
        return (given.amount, since + WITHDRAWAL_DELAY_SECONDS, expiresAt);
    }

    /// @notice Adds to the sequencer's bond. Anyone may; only the sequencer can take it out.
    function depositBond() external payable onlyInInbox {
        if (msg.value == 0) revert ZeroAmount();
        staked += msg.value;
        emit BondDeposited(msg.sender, msg.value, bond());
    }

    /// @notice Announces that `amount` of what was deposited will be taken out. Replaces an earlier announcement and
    /// starts the delay anew; 0 takes it back.
    function announceBondWithdrawal(uint128 amount) external {
        if (msg.sender != sequencer) revert NotSequencer(msg.sender);
        if (amount > staked) revert AmountAboveBond(amount, staked);
        announcement = Withdrawal({ amount: amount, announcedAt: uint64(block.timestamp) });
        emit BondWithdrawalAnnounced(amount, block.timestamp + ANNOUNCEMENT_LIFETIME_SECONDS);
    }

    /// @notice Takes out the announced amount after the delay, when no accusation is open.
    function withdrawBond(address payable to) external {
        if (msg.sender != sequencer) revert NotSequencer(msg.sender);
        (uint128 amount, uint64 unlocksAt,) = withdrawal();
        if (amount == 0) revert NoWithdrawalAnnounced();
        if (block.timestamp < unlocksAt) revert WithdrawalLocked(unlocksAt);
        if (openAccusations != 0) revert AccusationsOpen(openAccusations);
        delete announcement;
        staked -= amount;
        emit BondWithdrawn(to, amount, staked);
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

    /// @dev Takes all that was deposited, which may be nothing: half is burnt, rounded up, half is `reporter`'s.
    function slash(address reporter) internal returns (uint256 burnt, uint256 reward) {
        uint256 slashed = staked;
        staked = 0;
        delete announcement;
        reward = slashed / 2;
        burnt = slashed - reward;
        rewards[reporter] += reward;
        send(payable(address(0)), burnt);
    }

    /// @dev Whether the sequencer signed the struct with this hash.
    function signedBySequencer(bytes32 structHash, bytes calldata signature) internal view returns (bool) {
        // The sequencer is not the zero address, which stands for a bad signature.
        return Secp256k1.recover(Domain.digest(domainSeparator, structHash), signature) == sequencer;
    }

    function send(address payable to, uint256 amount) private {
        (bool sent,) = to.call{ value: amount }("");
        if (!sent) revert TransferFailed(to);
    }
}
