// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { MemberStakes } from "../../src/MemberStakes.sol";
import { IBlindedInbox } from "../../src/interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "../../src/interfaces/ICommitteeRegistry.sol";
import { BatchHeader } from "../../src/libraries/BatchHeaders.sol";
import { Symbolic } from "./Symbolic.sol";

/// @dev A registry and inbox for one committee of two, all of whose signatures stand.
contract AnyCommittee {
    uint64 public headNumber;

    function setHead(uint64 number) external {
        headNumber = number;
    }

    function acknowledged(uint64, uint64, bytes32, uint64, bytes calldata) external pure returns (bool) {
        return true;
    }

    function memberKey(uint64, uint16 member) external pure returns (bytes memory) {
        return abi.encode(member);
    }

    function numbersOf(uint64) external pure returns (uint64, uint64) {
        return (1, 1_000);
    }

    function head() external view returns (uint64, uint64, uint64, uint64) {
        return (headNumber, 0, 0, 0);
    }

    function l1MadeBelow(uint64, uint64, uint64) external pure returns (bool) {
        return false;
    }
}

/// @dev The stakes of two members in every state.
contract MemberStakesProofs is Symbolic {
    struct State {
        address owner;
        uint256 amount;
        uint256 other;
        uint256 reward;
        uint64 lastEpoch;
        uint64 unlocksAt;
        uint64 servesUpTo;
    }

    address internal constant CALLER = address(0x4e9);
    bytes32 internal constant FIRST = keccak256(abi.encode(uint16(1)));
    bytes32 internal constant SECOND = keccak256(abi.encode(uint16(2)));

    AnyCommittee internal committee = new AnyCommittee();
    MemberStakes internal stakes = new MemberStakes(
        ICommitteeRegistry(address(committee)), IBlindedInbox(address(committee)), 1 ether
    );

    function setUp() public {
        anyState(address(stakes));
    }

    function read() internal view returns (State memory state) {
        uint96 amount;
        (state.owner, amount, state.lastEpoch, state.unlocksAt, state.servesUpTo) = stakes.stakes(FIRST);
        state.amount = amount;
        (, amount,,,) = stakes.stakes(SECOND);
        state.other = amount;
        state.reward = stakes.rewards(CALLER);
    }

    function assumePossible(uint64 time, uint64 l1Block) internal returns (State memory state) {
        state = read();
        vm.assume(state.amount < MAX_WEI / 4 && state.other < MAX_WEI / 4 && state.reward < MAX_WEI / 4);
        vm.assume(time < MAX_TIME);
        vm.deal(address(stakes), MAX_WEI);
        vm.warp(time);
        vm.roll(l1Block);
    }

    /// @dev The owner takes out the stake, once its time has come, whole, and nothing else.
    function check_AStakeLeavesToItsOwnerAfterItsDelay(address caller, uint64 time) public {
        vm.assume(caller != address(0));
        State memory before = assumePossible(time, 1);
        vm.prank(caller);
        (bool done,) = address(stakes).call(abi.encodeCall(stakes.withdraw, (FIRST, address(0xcafe))));
        State memory later = read();
        assert(later.other == before.other && later.reward == before.reward);
        if (!done) return;
        assert(caller == before.owner && before.unlocksAt != 0 && time >= before.unlocksAt);
        assert(later.amount == 0 && later.unlocksAt == 0 && address(0xcafe).balance == before.amount);
        assert(address(stakes).balance == MAX_WEI - before.amount);
    }

    /// @dev It is announced by the owner alone, when the key's last epoch is over, a week ahead.
    function check_AnAnnouncementIsAWeekAhead(address caller, uint64 time, uint64 headNumber) public {
        State memory before = assumePossible(time, 1);
        committee.setHead(headNumber);
        vm.prank(caller);
        (bool done,) = address(stakes).call(abi.encodeCall(stakes.announceWithdrawal, (FIRST, true)));
        State memory later = read();
        assert(later.amount == before.amount && later.owner == before.owner);
        if (!done) return;
        assert(caller == before.owner && later.unlocksAt == time + 7 days);
        assert(before.lastEpoch == 0 || headNumber >= 1_000);
    }

    /// @dev The registry alone binds it, to no epoch that goes beyond what its owner alone agreed to.
    function check_AStakeIsBoundToNoMoreThanItServes(address caller, uint64 number, bool binds) public {
        State memory before = assumePossible(1, 1);
        bytes memory call = binds
            ? abi.encodeCall(stakes.bind, (FIRST, 7, number))
            : abi.encodeCall(stakes.serve, (FIRST, number));
        vm.prank(caller);
        (bool done,) = address(stakes).call(call);
        State memory later = read();
        assert(later.amount == before.amount && later.owner == before.owner);
        assert(later.unlocksAt == before.unlocksAt);
        if (!done || binds) assert(later.servesUpTo == before.servesUpTo);
        if (!done || !binds) assert(later.lastEpoch == before.lastEpoch);
        if (!done) return;
        if (binds) assert(caller == address(committee) && number <= before.servesUpTo);
        else assert(caller == before.owner && later.servesUpTo == number);
    }

    /// @dev For two headers everybody who signed both loses the whole stake, nobody else any: half is the reporter's, at
    /// most, and the rest is burnt.
    function check_ASlashTakesFromTheGuiltyAlone(
        BatchHeader memory one,
        BatchHeader memory two,
        uint64 both,
        bytes32 salt,
        uint64 l1Block
    ) public {
        vm.assume(both < 4);
        MemberStakes.Acknowledged memory first = MemberStakes.Acknowledged(one, 3, "");
        MemberStakes.Acknowledged memory second = MemberStakes.Acknowledged(two, both, "");
        State memory before = assumePossible(1 << 40, l1Block);
        vm.prank(CALLER);
        (bool done,) = address(stakes).call(abi.encodeCall(stakes.slashDouble, (1, first, second, salt)));
        State memory later = read();
        uint256 taken = before.amount + before.other - later.amount - later.other;
        uint256 rewarded = later.reward - before.reward;
        assert(later.amount == before.amount || later.amount == 0 && both & 1 != 0);
        assert(later.other == before.other || later.other == 0 && both & 2 != 0);
        assert(done == (taken != 0));
        assert(2 * rewarded <= taken && taken <= 2 * rewarded + 2);
        assert(address(stakes).balance == MAX_WEI - (taken - rewarded));
    }
}
