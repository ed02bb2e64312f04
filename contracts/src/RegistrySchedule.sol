// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IBlindedInbox, Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry, RegistrySettings } from "./interfaces/ICommitteeRegistry.sol";

/// @title What the governor may change, and with how much notice
/// @notice A change takes effect from a batch number on, at least `switchLead` ahead of the posted head, so that every
/// role has read it on a final L1 block long before it gets there. Only a committee that L1 has not heard of for
/// `postingDeadline` blocks can be ended where the head stands: after as much notice as an answer takes
/// (`answerWindow`), and only if nothing certified comes meanwhile.
abstract contract RegistrySchedule is ICommitteeRegistry {
    /// @notice A rule set and the number from which on it is in force.
    struct RulesChange {
        uint64 firstNumber;
        uint16 rules;
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
    /// @notice The L1 block in which the governor said that the committee is silent; 0 for none.
    uint64 public silenceAnnouncedAt;

    /// @notice Changes of the rule set, in order.
    RulesChange[] public rulesChanges;

    /// @notice From batch `firstNumber` on headers keep to this rule set.
    event RulesScheduled(uint64 indexed firstNumber, uint16 rules);
    /// @notice Nothing certified was posted since L1 block `lastCertifiedAt`. If that is still so after block
    /// `endableAfter`, anyone may end the epoch at the head.
    event SilenceAnnounced(uint64 lastCertifiedAt, uint256 endableAfter);

    /// @notice The governor or the inbox is the zero address.
    error ZeroAddress();
    /// @notice A notice of nothing, or a least threshold that no committee of the fewest members has.
    error BadSettings();
    /// @notice Only the governor may do this.
    error NotGovernor(address caller);
    /// @notice Changes begin at number `earliest` or later.
    error ChangeTooSoon(uint64 firstNumber, uint256 earliest);
    /// @notice Rule sets only rise, each from a later number on.
    error RulesOutOfOrder(uint64 firstNumber, uint16 rules);
    /// @notice Something certified was posted in L1 block `lastCertifiedAt`: silence lasts `postingDeadline` blocks, until
    /// after block `until`.
    error NotSilent(uint64 lastCertifiedAt, uint256 until);
    /// @notice The governor has not said that the committee is silent.
    error SilenceNotAnnounced();
    /// @notice Something certified was posted after the announcement.
    error CommitteeIsBack(uint64 lastCertifiedAt, uint64 announcedAt);
    /// @notice L1 has made no header since the committee fell silent: have it make one first, so that what was signed and
    /// not posted is dead.
    error NoL1Header(uint64 headNumber);
    /// @notice The committee has until this L1 block to post something certified.
    error NoticeNotOver(uint256 until);

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

    /// @notice Schedules a rule set. A role that does not know it stops before its first number.
    function scheduleRules(uint64 firstNumber, uint16 rules) external onlyGovernor {
        requireLead(firstNumber);
        uint256 count = rulesChanges.length;
        uint64 lastFirst = count == 0 ? 0 : rulesChanges[count - 1].firstNumber;
        uint16 lastRules = count == 0 ? FIRST_RULES : rulesChanges[count - 1].rules;
        if (firstNumber <= lastFirst || rules <= lastRules) revert RulesOutOfOrder(firstNumber, rules);
        rulesChanges.push(RulesChange({ firstNumber: firstNumber, rules: rules }));
        revision += 1;
        emit RulesScheduled(firstNumber, rules);
    }

    /// @inheritdoc ICommitteeRegistry
    function rulesOf(uint64 number) external view override returns (uint16) {
        for (uint256 i = rulesChanges.length; i != 0; i--) {
            RulesChange memory change = rulesChanges[i - 1];
            if (number >= change.firstNumber) return change.rules;
        }
        return FIRST_RULES;
    }

    /// @notice How many changes of the rule set there are.
    function rulesChangeCount() external view returns (uint256) {
        return rulesChanges.length;
    }

    /// @notice Says that the committee is silent; L1 has seen nothing certified for `postingDeadline` blocks. From
    /// `answerWindow` blocks later on `endSilentEpoch` works, unless the committee comes back. Again starts anew.
    function announceSilence() external onlyGovernor {
        Timing memory timing = IBlindedInbox(inbox).timing();
        uint64 lastCertifiedAt = IBlindedInbox(inbox).lastCertifiedAt();
        uint256 until = uint256(lastCertifiedAt) + timing.postingDeadline;
        if (block.number <= until) revert NotSilent(lastCertifiedAt, until);
        silenceAnnouncedAt = uint64(block.number);
        emit SilenceAnnounced(lastCertifiedAt, block.number + timing.answerWindow);
    }

    /// @dev Uses up the announcement, when nothing certified came since and its notice is over.
    function consumeSilence() internal {
        uint64 announcedAt = silenceAnnouncedAt;
        if (announcedAt == 0) revert SilenceNotAnnounced();
        uint64 lastCertifiedAt = IBlindedInbox(inbox).lastCertifiedAt();
        if (lastCertifiedAt >= announcedAt) revert CommitteeIsBack(lastCertifiedAt, announcedAt);
        uint256 until = uint256(announcedAt) + IBlindedInbox(inbox).timing().answerWindow;
        if (block.number <= until) revert NoticeNotOver(until);
        // A header made by L1 excuses whoever signs a second header above it; before the first there is none.
        uint64 number = headNumber();
        if (number != 0 && IBlindedInbox(inbox).headPostedAt() <= lastCertifiedAt) revert NoL1Header(number);
        silenceAnnouncedAt = 0;
    }

    /// @dev Reverts unless the number is far enough ahead of the posted head to change something from it on.
    function requireLead(uint64 firstNumber) internal view {
        uint256 earliest = uint256(headNumber()) + switchLead;
        if (firstNumber < earliest) revert ChangeTooSoon(firstNumber, earliest);
    }

    /// @dev The posted head's number.
    function headNumber() internal view returns (uint64 number) {
        (number,,,) = IBlindedInbox(inbox).head();
    }
}
