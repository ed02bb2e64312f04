// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "./CommitReveal.sol";
import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";
import { Domain } from "./libraries/Domain.sol";
import { Secp256k1 } from "./libraries/Secp256k1.sol";

/// @title The sequencer's bond and the rewards of those who report it
/// @notice Ether enters as bond or as a stake; it leaves as the sequencer's announced withdrawal, as a claimed reward,
/// or burnt. Of a slashed bond at least half is burnt, so that reporting oneself gains nothing.
abstract contract SequencerBond is IBlindedInbox, CommitReveal {
    /// @notice How long an announced withdrawal of the bond waits, open to slashing all the while.
    uint256 public constant WITHDRAWAL_DELAY_SECONDS = 7 days;

    /// @notice A withdrawal of the bond that waits.
    struct Withdrawal {
        uint128 amount;
        uint64 unlocksAt;
    }

    /// @inheritdoc IBlindedInbox
    address public immutable override sequencer;
    /// @notice Separator of the deployment's domain.
    bytes32 public immutable domainSeparator;

    /// @notice The sequencer's bond in wei.
    uint256 public bond;
    /// @notice The sequencer's announced withdrawal, if any.
    Withdrawal public withdrawal;
    /// @notice Accusations that wait for an answer; while there are any, the bond stays.
    uint256 public openAccusations;
    /// @notice Rewards that wait to be claimed.
    mapping(address reporter => uint256 amount) public rewards;

    /// @notice The bond grew.
    event BondDeposited(address indexed from, uint256 amount, uint256 bond);
    /// @notice The sequencer announced that it will take out `amount` (0 takes an announcement back).
    event BondWithdrawalAnnounced(uint256 amount, uint256 unlocksAt);
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
    /// @notice More than the bond.
    error AmountAboveBond(uint256 amount, uint256 bond);
    /// @notice No withdrawal was announced.
    error NoWithdrawalAnnounced();
    /// @notice The announced withdrawal still waits.
    error WithdrawalLocked(uint256 unlocksAt);
    /// @notice This many accusations are open: answer them, or wait until they are settled.
    error AccusationsOpen(uint256 count);
    /// @notice A transfer of ether failed.
    error TransferFailed(address to);

    constructor(address sequencer_) {
        if (sequencer_ == address(0)) revert ZeroSequencer();
        sequencer = sequencer_;
        domainSeparator = Domain.separator(block.chainid, address(this));
    }

    /// @notice Adds to the sequencer's bond. Anyone may; only the sequencer can take it out.
    function depositBond() external payable {
        if (msg.value == 0) revert ZeroAmount();
        bond += msg.value;
        emit BondDeposited(msg.sender, msg.value, bond);
    }

    /// @notice Announces that `amount` of the bond will be taken out. Replaces an earlier announcement and starts the
    /// delay anew; 0 takes it back.
    function announceBondWithdrawal(uint128 amount) external {
        if (msg.sender != sequencer) revert NotSequencer(msg.sender);
        if (amount > bond) revert AmountAboveBond(amount, bond);
        uint256 unlocksAt = block.timestamp + WITHDRAWAL_DELAY_SECONDS;
        withdrawal = Withdrawal({ amount: amount, unlocksAt: uint64(unlocksAt) });
        emit BondWithdrawalAnnounced(amount, unlocksAt);
    }

    /// @notice Takes out the announced amount after the delay, when no accusation is open.
    function withdrawBond(address payable to) external {
        if (msg.sender != sequencer) revert NotSequencer(msg.sender);
        Withdrawal memory announced = withdrawal;
        if (announced.amount == 0) revert NoWithdrawalAnnounced();
        if (block.timestamp < announced.unlocksAt) revert WithdrawalLocked(announced.unlocksAt);
        if (openAccusations != 0) revert AccusationsOpen(openAccusations);
        delete withdrawal;
        bond -= announced.amount;
        emit BondWithdrawn(to, announced.amount, bond);
        send(to, announced.amount);
    }

    /// @notice Pays out the caller's rewards.
    function claimReward() external {
        uint256 amount = rewards[msg.sender];
        if (amount == 0) revert ZeroAmount();
        rewards[msg.sender] = 0;
        emit RewardClaimed(msg.sender, amount);
        send(payable(msg.sender), amount);
    }

    /// @dev Takes the whole bond, which may be nothing: half is burnt, rounded up, half is `reporter`'s.
    function slash(address reporter) internal returns (uint256 burnt, uint256 reward) {
        uint256 slashed = bond;
        bond = 0;
        delete withdrawal;
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
