// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IBlindedInbox, Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry, RegistrySettings } from "./interfaces/ICommitteeRegistry.sol";

/// @title What the governor may change, and with how much notice
/// @notice A change takes effect from a batch number on, at least `switchLead` ahead of the posted head, so that every
/// role has read it on a final L1 block long before it gets there.
///
/// Numbers stand still when a committee does not certify. So an epoch can also be ended by time, where the head then
/// stands: as long after the announcement as a new committee has to wait (`epochNotice`), or, when L1 has not heard of the
/// committee for `postingDeadline` blocks, as long as an answer takes (`answerWindow`) and only if nothing certified comes
/// meanwhile. The next header that L1 makes is then the epoch's last, in one transaction: whoever knows of that header
/// knows whose the next number is, and what was signed for it before is displaced and excused.
abstract contract RegistrySchedule is ICommitteeRegistry {
    /// @notice A rule set and the number from which on it is in force.
    struct RulesChange {
        uint64 firstNumber;
        uint16 rules;
    }

    /// @notice An announced end of an epoch, at the head.
    struct Ending {
        /// The epoch; 0 for none.
        uint64 epoch;
        /// The L1 block of the announcement.
        uint64 announcedAt;
        /// After this L1 block the next header that L1 makes is the epoch's last.
        uint64 until;
        /// Announced because the committee was silent: something certified since takes it back.
        bool forSilence;
    }

    /// @dev The rule set that a deployment begins with.
    uint16 internal constant FIRST_RULES = 1;

    /// @notice Who may append epochs and schedule changes.
    address public immutable governor;
    /// @inheritdoc ICommitteeRegistry
    /// @dev The verifying contract of the domain.
    address public immutable override inbox;
    /// @inheritdoc ICommitteeRegistry
    uint32 public immutable override epochNotice;
    /// @notice How far ahead of the posted head a number must be for the governor to change something from it on.
    uint64 public immutable switchLead;
    /// @notice The fewest members of a committee.
    uint16 public immutable minMembers;
    /// @notice The least threshold of a committee.
    uint16 public immutable minThreshold;

    /// @inheritdoc ICommitteeRegistry
    uint64 public override epochCount;
    /// @notice Grows with every change: who keeps what it read reads again when this is another number.
    uint64 public revision;
    /// @dev The L1 block in which an epoch was last ended at the head; 0 before.
    uint64 internal endedAt;
    /// @notice The end of an epoch that is announced; of epoch 0 for none.
    Ending public ending;

    /// @notice Changes of the rule set, in order. The last one may be taken back while it is far enough ahead.
    RulesChange[] public rulesChanges;

    /// @notice From batch `firstNumber` on headers keep to this rule set. A change that was scheduled for a number at least
    /// `switchLead` ahead is void: with the rule set that is in force before, there is none.
    event RulesScheduled(uint64 indexed firstNumber, uint16 rules);
    /// @notice After L1 block `until` the next header that L1 makes is the epoch's last; if it was announced for silence,
    /// only when nothing certified is posted in between. Epoch 0 takes the announcement back.
    event EndAnnounced(uint64 indexed epoch, uint64 until, bool forSilence);

    /// @notice The governor or the inbox is the zero address.
    error ZeroAddress();
    /// @notice A notice of nothing, or a least threshold that no committee of the fewest members has.
    error BadSettings();
    /// @notice Only the governor may do this.
    error NotGovernor(address caller);
    /// @notice Changes begin at number `earliest` or later.
    error ChangeTooSoon(uint64 firstNumber, uint256 earliest);
    /// @notice The rule set before begins at number `firstNumber`, which is not posted yet and too near to give way: one at a
    /// time.
    error RulesNotBegun(uint64 firstNumber);
    /// @notice Rule sets rise by one.
    error RulesOutOfOrder(uint64 firstNumber, uint16 rules);
    /// @notice Something certified was posted in L1 block `since`, or the committee could certify from then on: silence
    /// lasts `postingDeadline` blocks, until after block `until`.
    error NotSilent(uint64 since, uint256 until);
    /// @notice No end of the epoch of batch `number` is announced, its notice is not over, or the committee is back.
    error EndNotDue(uint64 number);
    /// @notice Something is posted: the epoch ends at the next header that L1 makes (`postL1Header` of the inbox).
    error HeadersPosted(uint64 headNumber);
    /// @notice Only the inbox may do this.
    error NotInbox(address caller);

    constructor(address governor_, address inbox_, RegistrySettings memory settings) {
        if (governor_ == address(0) || inbox_ == address(0)) revert ZeroAddress();
        bool possible = settings.minThreshold != 0 && settings.minThreshold <= settings.minMembers;
        if (settings.epochNotice == 0 || settings.switchLead == 0 || !possible) revert BadSettings();
        governor = governor_;
        inbox = inbox_;
        epochNotice = settings.epochNotice;
        switchLead = settings.switchLead;
        minMembers = settings.minMembers;
        minThreshold = settings.minThreshold;
    }

    modifier onlyGovernor() {
        if (msg.sender != governor) revert NotGovernor(msg.sender);
        _;
    }

    /// @notice Schedules a rule set. A role that does not know it stops before its first number. A change that is still as
    /// far ahead as a new one has to be gives way: scheduling the rule set before it takes it back. One that has come
    /// nearer must have begun first. So `switchLead` numbers are posted for each at least, and the 65,535 that there are
    /// last for centuries, whoever has the governor's key (E-4).
    function scheduleRules(uint64 firstNumber, uint16 rules) external onlyGovernor {
        uint256 earliest = requireLead(firstNumber);
        uint256 count = rulesChanges.length;
        uint64 pending = count == 0 ? 0 : rulesChanges[count - 1].firstNumber;
        bool replaced = pending >= earliest;
        if (replaced) {
            rulesChanges.pop();
            count--;
        } else if (pending > earliest - switchLead) {
            revert RulesNotBegun(pending);
        }
        uint16 lastRules = count == 0 ? FIRST_RULES : rulesChanges[count - 1].rules;
        if (!replaced || rules != lastRules) {
            // All before it have begun, so the number is a later one.
            if (rules != uint256(lastRules) + 1) revert RulesOutOfOrder(firstNumber, rules);
            rulesChanges.push(RulesChange({ firstNumber: firstNumber, rules: rules }));
        }
        revision += 1;
        emit RulesScheduled(firstNumber, rules);
    }

    /// @inheritdoc ICommitteeRegistry
    function rulesOf(uint64 number) external view override returns (uint16) {
        uint256 low = 0;
        uint256 high = rulesChanges.length;
        while (low < high) {
            uint256 middle = (low + high) / 2;
            if (rulesChanges[middle].firstNumber <= number) low = middle + 1;
            else high = middle;
        }
        return low == 0 ? FIRST_RULES : rulesChanges[low - 1].rules;
    }

    /// @notice How many changes of the rule set there are.
    function rulesChangeCount() external view returns (uint256) {
        return rulesChanges.length;
    }

    /// @notice Says that the committee of the next number is silent: L1 has seen nothing certified for `postingDeadline`
    /// blocks, in which its certificates counted and the next number was its own: it does not inherit the silence of the
    /// committee before it. `answerWindow` blocks later the epoch can end, unless the committee comes back. Takes the
    /// place of an earlier announcement (E-5).
    function announceSilence() external onlyGovernor {
        Timing memory timing = IBlindedInbox(inbox).timing();
        (uint64 epoch, uint64 since) = next();
        uint64 lastCertifiedAt = IBlindedInbox(inbox).lastCertifiedAt();
        if (since < lastCertifiedAt) since = lastCertifiedAt;
        uint256 until = uint256(since) + timing.postingDeadline;
        if (block.number <= until) revert NotSilent(since, until);
        announce(epoch, timing.answerWindow, true);
    }

    /// @notice Announces the end of the next number's epoch for `epochNotice` blocks from now, whatever its committee does:
    /// one that certifies a header now and then is not silent, and numbers far ahead are never reached. Takes the place of
    /// an earlier announcement (E-5).
    function announceEnd() external onlyGovernor {
        (uint64 epoch,) = next();
        announce(epoch, epochNotice, false);
    }

    /// @notice Takes the announcement of an end back.
    function takeBackEnd() external onlyGovernor {
        announce(0, 0, false);
    }

    /// @inheritdoc ICommitteeRegistry
    function endDue(uint64 number) public view override returns (bool) {
        Ending memory given = ending;
        return block.number > given.until && stands(given, number);
    }

    /// @inheritdoc ICommitteeRegistry
    function endsAfter(uint64 number) external view override returns (uint64 until) {
        Ending memory given = ending;
        return stands(given, number) ? given.until : type(uint64).max;
    }

    /// @inheritdoc ICommitteeRegistry
    function servingEpoch(uint64 number) public view virtual override returns (uint64);

    /// @dev The epoch of the next number, and from which L1 block on its committee could certify one; reverts where none is
    /// registered.
    function next() internal view virtual returns (uint64 epoch, uint64 since);

    /// @dev Whether what was announced holds for the epoch of this number.
    function stands(Ending memory given, uint64 number) private view returns (bool) {
        if (given.epoch == 0) return false;
        bool isBack = given.forSilence && IBlindedInbox(inbox).lastCertifiedAt() >= given.announcedAt;
        return !isBack && given.epoch == servingEpoch(number);
    }

    function announce(uint64 epoch, uint32 notice, bool forSilence) private {
        uint64 until = uint64(block.number) + notice;
        ending =
            Ending({ epoch: epoch, announcedAt: uint64(block.number), until: until, forSilence: forSilence });
        emit EndAnnounced(epoch, until, forSilence);
    }

    /// @dev Reverts unless the number is far enough ahead of the posted head to change something from it on.
    function requireLead(uint64 firstNumber) internal view returns (uint256 earliest) {
        earliest = uint256(headNumber()) + switchLead;
        if (firstNumber < earliest) revert ChangeTooSoon(firstNumber, earliest);
    }

    /// @dev The posted head's number.
    function headNumber() internal view returns (uint64 number) {
        (number,,,) = IBlindedInbox(inbox).head();
    }
}
