// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { PostedHeaders } from "../../src/PostedHeaders.sol";
import { SequencerBond } from "../../src/SequencerBond.sol";
import { Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "../../src/interfaces/ICommitteeRegistry.sol";
import { OneSequencer, Symbolic } from "./Symbolic.sol";

/// @dev The bond, with what others do to it.
contract AnyBond is SequencerBond {
    constructor(ICommitteeRegistry registry_, Timing memory timing_)
        PostedHeaders(timing_)
        SequencerBond(registry_, address(this))
    { }

    function slashAll(address sequencer_, address reporter) external returns (uint256 burnt, uint256 reward) {
        return slash(sequencer_, reporter);
    }

    /// @dev Accusations of a sequencer that are open.
    function openOf(address sequencer_) external view returns (uint64) {
        bytes32 place = keccak256(abi.encode(sequencer_, uint256(6)));
        uint256 account;
        assembly {
            account := sload(place)
        }
        return uint64(account >> 128);
    }

    /// @dev Two private slots of an account: see the table at BlindedInbox.
    function slots(address sequencer_)
        external
        view
        returns (uint256 staked, uint128 announced, uint64 announcedAt)
    {
        bytes32 place = keccak256(abi.encode(sequencer_, uint256(6)));
        uint256 account;
        uint256 announcement;
        assembly {
            account := sload(place)
            announcement := sload(add(place, 1))
        }
        return (uint128(account), uint128(announcement), uint64(announcement >> 128));
    }
}

/// @dev What holds in every state of the bond, and after every call by anybody.
contract SequencerBondProofs is Symbolic {
    struct State {
        uint256 staked;
        uint128 announced;
        uint64 announcedAt;
        uint256 held;
        uint256 callersReward;
        uint256 reportersReward;
    }

    address internal constant SEQUENCER = address(0x5e0);
    address internal constant REPORTER = address(0x4e9);

    AnyBond internal bond = new AnyBond(ICommitteeRegistry(address(new OneSequencer(SEQUENCER))), timing());

    function setUp() public {
        anyState(address(bond));
    }

    function read(address caller) internal view returns (State memory state) {
        (state.staked, state.announced, state.announcedAt) = bond.slots(caller);
        state.held = address(bond).balance;
        state.callersReward = bond.rewards(caller);
        state.reportersReward = bond.rewards(REPORTER);
    }

    /// @dev A state that can come about: no more is announced than staked, everything is paid for, and the past is past.
    function assumePossible(State memory state, address caller, uint256 time, uint256 held) internal {
        vm.assume(caller != address(bond) && caller != address(this) && caller != REPORTER);
        vm.assume(time < MAX_TIME && state.announcedAt <= time && bond.lastCertifiedTime() <= time);
        vm.assume(state.staked < MAX_WEI && state.callersReward < MAX_WEI && state.reportersReward < MAX_WEI);
        vm.assume(state.announced <= state.staked);
        vm.assume(held < 4 * MAX_WEI && held >= state.staked + state.callersReward + state.reportersReward);
        vm.deal(address(bond), held);
        vm.warp(time);
    }

    /// @dev One call of anybody: 0 deposit, 1 announce, 2 withdraw, 3 claim, 4 be slashed.
    function act(uint8 kind, address caller, uint128 amount) internal returns (bool done) {
        bytes memory call;
        uint256 value = 0;
        if (kind == 0) {
            call = abi.encodeCall(bond.depositBond, (caller));
            value = amount;
            vm.assume(amount < MAX_WEI);
            vm.deal(caller, value);
        } else if (kind == 1) {
            call = abi.encodeCall(bond.announceBondWithdrawal, (amount));
        } else if (kind == 2) {
            call = abi.encodeCall(bond.withdrawBond, (payable(address(0xcafe))));
        } else if (kind == 3) {
            call = abi.encodeCall(bond.claimReward, ());
        } else {
            call = abi.encodeCall(bond.slashAll, (caller, REPORTER));
        }
        vm.prank(caller);
        (done,) = address(bond).call{ value: value }(call);
    }

    /// @dev Ether held less stake and rewards never changes, so nothing is paid out but what is staked or owed; and no
    /// more than is staked is ever announced.
    function check_EveryCallConservesEther(
        uint8 kind,
        address caller,
        uint128 amount,
        uint64 time,
        uint256 held
    ) public {
        vm.assume(kind < 5);
        State memory before = read(caller);
        assumePossible(before, caller, time, held);
        before.held = held;
        act(kind, caller, amount);
        State memory later = read(caller);
        assert(later.announced <= later.staked);
        assert(
            later.held + before.staked + before.callersReward + before.reportersReward
                == before.held + later.staked + later.callersReward + later.reportersReward
        );
    }

    /// @dev `bondOf` answers in every state, with no more than is staked, and a slash takes as much at least: half of
    /// all, rounded down, for the reporter, the rest burnt.
    function check_ASlashTakesWhatBondShows(uint64 time, uint256 held) public {
        State memory before = read(SEQUENCER);
        assumePossible(before, SEQUENCER, time, held);
        uint256 shown = bond.bondOf(SEQUENCER);
        assert(shown <= before.staked);
        (uint256 burnt, uint256 reward) = bond.slashAll(SEQUENCER, REPORTER);
        assert(burnt + reward == before.staked && burnt + reward >= shown);
        assert(burnt == reward || burnt == reward + 1);
        State memory later = read(SEQUENCER);
        assert(later.staked == 0 && later.announced == 0);
        assert(later.reportersReward == before.reportersReward + reward);
        assert(address(bond).balance == held - burnt);
    }

    /// @dev Everybody takes out just what he announced of his own, a week after that, before it lapses, and while no
    /// accusation is open; whose time is not over, a week after the last certified posting at the earliest.
    function check_AWithdrawalWaits(address caller, uint64 time, uint256 held) public {
        State memory before = read(caller);
        assumePossible(before, caller, time, held);
        uint256 certified = bond.lastCertifiedTime();
        uint256 open = bond.openOf(caller);
        vm.deal(address(0xcafe), 0);
        if (!act(2, caller, 0)) return;
        assert(open == 0 && before.announced != 0);
        assert(time >= uint256(before.announcedAt) + 7 days);
        assert(caller != SEQUENCER || time >= certified + 7 days);
        assert(time < uint256(before.announcedAt) + 21 days);
        assert(address(0xcafe).balance == before.announced);
        State memory later = read(caller);
        assert(later.announced == 0 && later.staked == before.staked - before.announced);
    }

    /// @dev B-1 over time: whatever two calls anybody makes in the week after somebody looked at `bondOf`, a slash then
    /// still takes as much.
    function check_WhatBondShowsStaysForAWeek(
        uint8 first,
        uint8 second,
        uint128 amount,
        uint64 time,
        uint64 wait,
        uint64 wait2
    ) public {
        vm.assume(first < 3 && second < 3 && uint256(wait) + wait2 < 7 days);
        State memory before = read(SEQUENCER);
        assumePossible(before, SEQUENCER, time, 3 * MAX_WEI);
        uint256 shown = bond.bondOf(SEQUENCER);
        vm.warp(uint256(time) + wait);
        act(first, SEQUENCER, amount);
        vm.warp(uint256(time) + wait + wait2);
        act(second, SEQUENCER, amount);
        (uint256 burnt, uint256 reward) = bond.slashAll(SEQUENCER, REPORTER);
        assert(burnt + reward >= shown);
    }
}
