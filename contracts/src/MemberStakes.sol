// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "./CommitReveal.sol";
import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { IMemberStakes } from "./interfaces/IMemberStakes.sol";
import { BatchHeader, BatchHeaders } from "./libraries/BatchHeaders.sol";
import { Bls12381 } from "./libraries/Bls12381.sol";
import { Domain } from "./libraries/Domain.sol";

/// @title What members of committees have at stake
/// @notice Ether that stands behind a member's BLS key. A registry with stakes appends no epoch with a member whose key
/// has less than `stakeWei` here, or whose owner has not agreed to the epoch's last number (`serve`): a proof of
/// possession holds for any epoch, so without that the governor could bind a stake for as long as it likes. The stake is
/// bound until the epoch is over, and leaves a week after that was announced.
///
/// A member loses all of it for (1) acknowledging two headers of one number and (2) acknowledging a header that is not
/// of the number and epoch that the acknowledgement names. Evidence are BLS signatures: single ones, or certificates, of
/// which everybody who signed both is guilty. Half is burnt, half is the reporter's; reports go by commit–reveal. As for
/// the sequencer, two headers are excused when L1 made one below them in between: the first was signed without knowing
/// of it, and the second follows it.
///
/// What this cannot judge: a header whose fields are wrong only in the light of its batch or of L1's history, and release
/// shares, which nobody signs.
/// @dev No owner. Storage: slot 0 `committedAt` (CommitReveal), 1 `stakes` (two slots for a key), 2 `rewards`,
/// 3 `punished`.
contract MemberStakes is IMemberStakes, CommitReveal {
    using BatchHeaders for BatchHeader;

    /// @notice How long an announced withdrawal waits, open to slashing all the while.
    uint256 public constant WITHDRAWAL_DELAY_SECONDS = 7 days;

    /// @dev keccak256 of the EIP-712 type that a member signs once to name the owner of its stake.
    bytes32 internal constant OWNER_TYPEHASH =
        keccak256("StakeOwner(uint8 version,bytes32 keyHash,address owner)");
    /// @dev Version of the structure.
    uint8 internal constant OWNER_VERSION = 2;

    /// @notice What stands behind one key.
    struct Stake {
        /// Who takes it out; named by the member's own signature.
        address owner;
        uint96 amount;
        /// The last epoch that the key is a member of; 0 for none.
        uint64 lastEpoch;
        /// The time, in seconds, from which it can be taken out; 0 when that is not announced.
        uint64 unlocksAt;
        /// The key becomes a member of no further epoch that has numbers above this one.
        uint64 servesUpTo;
    }

    /// @notice A header with signatures over its acknowledgement: of one member, or of several, added up.
    struct Acknowledged {
        BatchHeader header;
        /// Bit j−1 is set for member j.
        uint64 signers;
        /// In G1, 128 bytes as in EIP-2537.
        bytes signature;
    }

    /// @notice The committees.
    ICommitteeRegistry public immutable registry;
    /// @notice Where headers are posted.
    IBlindedInbox public immutable inbox;
    /// @notice What each member of a new epoch has at stake at least, in wei.
    uint96 public immutable stakeWei;
    /// @notice Separator of the deployment's domain.
    bytes32 public immutable domainSeparator;

    /// @notice The stake of a key, by keccak256 of its 256 bytes.
    mapping(bytes32 keyHash => Stake) public stakes;
    /// @notice Rewards that wait to be claimed.
    mapping(address reporter => uint256 amount) public rewards;
    /// @notice What a key was punished for already, by `keccak256(abi.encode(keyHash, evidence))`.
    mapping(bytes32 misdeed => bool) public punished;

    /// @notice A stake grew.
    event StakeDeposited(bytes32 indexed keyHash, address indexed owner, uint256 amount, uint256 stake);
    /// @notice The key may become a member of epochs with numbers up to this one.
    event Serves(bytes32 indexed keyHash, uint64 lastNumber);
    /// @notice The stake can be taken out from this time on (0 takes the announcement back).
    event StakeWithdrawalAnnounced(bytes32 indexed keyHash, uint256 unlocksAt);
    /// @notice The stake left.
    event StakeWithdrawn(bytes32 indexed keyHash, address indexed to, uint256 amount);
    /// @notice The member lost its stake over an acknowledgement of `number`.
    event StakeSlashed(
        bytes32 indexed keyHash,
        uint64 indexed epoch,
        uint64 indexed number,
        address reporter,
        uint256 burnt,
        uint256 reward
    );
    /// @notice `reporter` took its reward.
    event RewardClaimed(address indexed reporter, uint256 amount);

    /// @notice A stake of nothing is none: leave the contract out instead.
    error ZeroStake();
    /// @notice Only the registry may do this.
    error NotRegistry(address caller);
    /// @notice Only the stake's owner may do this.
    error NotOwner(address caller);
    /// @notice The key's signature does not name this owner, or the stake has another.
    error BadOwner(address owner);
    /// @notice A deposit or claim of nothing.
    error ZeroAmount();
    /// @notice A member's key has less than `stakeWei` at stake.
    error StakeTooSmall(bytes32 keyHash, uint256 stake);
    /// @notice The member's stake is about to leave.
    error StakeLeaves(bytes32 keyHash);
    /// @notice The owner agreed to numbers up to `servesUpTo`, and the epoch's last one is `lastNumber`.
    error NotServing(bytes32 keyHash, uint64 servesUpTo, uint64 lastNumber);
    /// @notice The key's last epoch is not over: it has numbers up to `lastNumber`.
    error EpochNotOver(uint64 epoch, uint64 lastNumber);
    /// @notice The withdrawal was not announced, or still waits.
    error StakeLocked(uint256 unlocksAt);
    /// @notice The two headers are of different numbers, or the same.
    error NoConflict();
    /// @notice L1 made a header between the two.
    error Excused(uint64 number);
    /// @notice The header is of this number and epoch.
    error NothingWrong(bytes32 headerHash);
    /// @notice No stake is left, or it was punished for this already, of any member that signed.
    error NobodyToPunish();
    /// @notice The signature does not stand.
    error BadSignature();
    /// @notice A transfer of ether failed.
    error TransferFailed(address to);

    /// @param registry_ The CommitteeRegistry that was told of this address.
    /// @param inbox_ The deployment's BlindedInbox.
    /// @param stakeWei_ What each member has at stake at least, in wei.
    constructor(ICommitteeRegistry registry_, IBlindedInbox inbox_, uint96 stakeWei_) {
        if (stakeWei_ == 0) revert ZeroStake();
        registry = registry_;
        inbox = inbox_;
        stakeWei = stakeWei_;
        domainSeparator = Domain.separator(block.chainid, address(inbox_));
    }

    /// @notice Adds to the stake of a key. The first time the key's signature names the owner; anyone may pay.
    /// @param key In G2, 256 bytes as in EIP-2537.
    /// @param signature The key's, over `ownerDigest`; not looked at where the stake has an owner.
    function deposit(bytes calldata key, address owner, bytes calldata signature) external payable {
        if (msg.value == 0) revert ZeroAmount();
        bytes32 keyHash = keccak256(key);
        Stake storage stake = stakes[keyHash];
        if (stake.owner == address(0)) {
            bytes memory message = abi.encodePacked(ownerDigest(keyHash, owner));
            bool named =
                owner != address(0) && Bls12381.verify(key, Bls12381.SIGNATURE_TAG, message, signature);
            if (!named) revert BadOwner(owner);
            stake.owner = owner;
        } else if (stake.owner != owner) {
            revert BadOwner(owner);
        }
        stake.amount += uint96(msg.value);
        emit StakeDeposited(keyHash, owner, msg.value, stake.amount);
    }

    /// @notice The 32 bytes that a member signs with its BLS key to name who owns its stake.
    function ownerDigest(bytes32 keyHash, address owner) public view returns (bytes32) {
        return Domain.digest(
            domainSeparator, keccak256(abi.encode(OWNER_TYPEHASH, OWNER_VERSION, keyHash, owner))
        );
    }

    /// @notice Says, as the stake's owner, up to which batch number its key may serve; 0, as in the beginning, for none.
    /// Higher or lower at any time: it changes nothing about epochs that are registered.
    function serve(bytes32 keyHash, uint64 lastNumber) external {
        Stake storage stake = stakes[keyHash];
        if (msg.sender != stake.owner) revert NotOwner(msg.sender);
        stake.servesUpTo = lastNumber;
        emit Serves(keyHash, lastNumber);
    }

    /// @inheritdoc IMemberStakes
    function bind(bytes32 keyHash, uint64 epoch, uint64 lastNumber) external override {
        if (msg.sender != address(registry)) revert NotRegistry(msg.sender);
        Stake storage stake = stakes[keyHash];
        if (stake.amount < stakeWei) revert StakeTooSmall(keyHash, stake.amount);
        if (stake.unlocksAt != 0) revert StakeLeaves(keyHash);
        if (lastNumber > stake.servesUpTo) revert NotServing(keyHash, stake.servesUpTo, lastNumber);
        stake.lastEpoch = epoch;
    }

    /// @notice Announces that the stake will be taken out, when the key's last epoch is over, or takes that back.
    function announceWithdrawal(bytes32 keyHash, bool leaves) external {
        Stake storage stake = stakes[keyHash];
        if (msg.sender != stake.owner) revert NotOwner(msg.sender);
        uint256 unlocksAt = 0;
        if (leaves) {
            requireOver(stake.lastEpoch);
            unlocksAt = block.timestamp + WITHDRAWAL_DELAY_SECONDS;
        }
        stake.unlocksAt = uint64(unlocksAt);
        emit StakeWithdrawalAnnounced(keyHash, unlocksAt);
    }

    /// @notice Takes out the whole stake after the delay.
    function withdraw(bytes32 keyHash, address to) external {
        Stake storage stake = stakes[keyHash];
        if (msg.sender != stake.owner) revert NotOwner(msg.sender);
        uint256 unlocksAt = stake.unlocksAt;
        if (unlocksAt == 0 || block.timestamp < unlocksAt) revert StakeLocked(unlocksAt);
        uint256 amount = stake.amount;
        if (amount == 0) revert ZeroAmount();
        stake.amount = 0;
        stake.unlocksAt = 0;
        emit StakeWithdrawn(keyHash, to, amount);
        send(to, amount);
    }

    /// @notice Punishes everybody who acknowledged both of two headers of one number (M-1).
    /// Evidence committed to: `keccak256(abi.encode(epoch, number, lesser hash, greater hash))`.
    function slashDouble(
        uint64 epoch,
        Acknowledged calldata first,
        Acknowledged calldata second,
        bytes32 salt
    ) external {
        uint64 number = first.header.number;
        (bytes32 low, bytes32 high) = (first.header.hash(), second.header.hash());
        if (number != second.header.number || low == high) revert NoConflict();
        requireSigned(epoch, number, low, first);
        requireSigned(epoch, number, high, second);
        (uint64 origin, uint64 later) = (first.header.l1OriginNumber, second.header.l1OriginNumber);
        if (origin > later) (origin, later) = (later, origin);
        if (inbox.l1MadeBelow(number, origin, later)) revert Excused(number);
        if (low > high) (low, high) = (high, low);
        bytes32 evidence = keccak256(abi.encode(epoch, number, low, high));
        reveal(evidence, salt);
        punish(epoch, number, first.signers & second.signers, evidence);
    }

    /// @notice Punishes everybody who acknowledged, for `epoch` and `number`, a header that is of another one (M-2).
    /// Evidence committed to: `keccak256(abi.encode(epoch, number, header hash))`.
    function slashWrong(uint64 epoch, uint64 number, Acknowledged calldata given, bytes32 salt) external {
        bytes32 headerHash = given.header.hash();
        bool right = given.header.number == number && given.header.epoch == epoch
            && given.header.version == BatchHeaders.VERSION;
        if (right) revert NothingWrong(headerHash);
        requireSigned(epoch, number, headerHash, given);
        bytes32 evidence = keccak256(abi.encode(epoch, number, headerHash));
        reveal(evidence, salt);
        punish(epoch, number, given.signers, evidence);
    }

    /// @notice Pays out the caller's rewards.
    function claimReward() external {
        uint256 amount = rewards[msg.sender];
        if (amount == 0) revert ZeroAmount();
        rewards[msg.sender] = 0;
        emit RewardClaimed(msg.sender, amount);
        send(msg.sender, amount);
    }

    function requireOver(uint64 epoch) private view {
        if (epoch == 0) return;
        (, uint64 lastNumber) = registry.numbersOf(epoch);
        (uint64 headNumber,,,) = inbox.head();
        if (headNumber < lastNumber) revert EpochNotOver(epoch, lastNumber);
    }

    function requireSigned(uint64 epoch, uint64 number, bytes32 headerHash, Acknowledged calldata given)
        private
        view
    {
        if (!registry.acknowledged(epoch, number, headerHash, given.signers, given.signature)) {
            revert BadSignature();
        }
    }

    /// @dev Takes the whole stake of every member of the set that was not punished for this before.
    function punish(uint64 epoch, uint64 number, uint64 members, bytes32 evidence) private {
        uint256 slashed = 0;
        uint256 burnt = 0;
        for (uint16 member = 1; members != 0; member++) {
            bool guilty = members & 1 == 1;
            members >>= 1;
            if (!guilty) continue;
            bytes32 keyHash = keccak256(registry.memberKey(epoch, member));
            bytes32 misdeed = keccak256(abi.encode(keyHash, evidence));
            Stake storage stake = stakes[keyHash];
            uint256 amount = stake.amount;
            if (amount == 0 || punished[misdeed]) continue;
            punished[misdeed] = true;
            stake.amount = 0;
            stake.unlocksAt = 0;
            uint256 reward = amount / 2;
            slashed += amount;
            burnt += amount - reward;
            emit StakeSlashed(keyHash, epoch, number, msg.sender, amount - reward, reward);
        }
        if (slashed == 0) revert NobodyToPunish();
        rewards[msg.sender] += slashed - burnt;
        send(address(0), burnt);
    }

    function send(address to, uint256 amount) private {
        (bool sent,) = to.call{ value: amount }("");
        if (!sent) revert TransferFailed(to);
    }
}
