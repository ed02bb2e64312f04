// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FaultRecords } from "../../src/FaultRecords.sol";
import { FaultReports } from "../../src/FaultReports.sol";
import { PostedHeaders } from "../../src/PostedHeaders.sol";
import { SequencerBond } from "../../src/SequencerBond.sol";
import { Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "../../src/interfaces/ICommitteeRegistry.sol";
import { BatchHeader } from "../../src/libraries/BatchHeaders.sol";
import { Promises } from "../../src/libraries/Promises.sol";
import { OneSequencer, Symbolic } from "./Symbolic.sol";

address constant SEQUENCER = address(0x5e0);

/// @dev What the BlindedInbox is but for posting: reports run the code of SequencerFaults on its storage.
contract AnyReports is FaultReports {
    constructor(ICommitteeRegistry registry_, Timing memory timing_)
        PostedHeaders(timing_)
        SequencerBond(registry_, address(this))
        FaultReports(registry_, timing_)
    { }

    /// @dev A private slot: see the table at BlindedInbox.
    function staked() external view returns (uint256 value) {
        bytes32 place = keccak256(abi.encode(SEQUENCER, uint256(6)));
        assembly {
            value := sload(place)
        }
        return uint128(value);
    }
}

/// @dev Reports in every state, with no header that L1 made.
contract SequencerFaultsProofs is Symbolic {
    struct Signature {
        bytes32 r;
        bytes32 s;
        uint8 v;
    }

    struct Evidence {
        BatchHeader first;
        Signature one;
        BatchHeader second;
        Signature two;
        bytes32 salt;
    }

    address internal constant REPORTER = address(0x4e9);

    AnyReports internal inbox =
        new AnyReports(ICommitteeRegistry(address(new OneSequencer(SEQUENCER))), timing());

    function setUp() public {
        anyState(address(inbox));
    }

    /// @dev Ether that is paid for, and a past that is past.
    function assumePossible(address reporter, uint64 l1Block) internal {
        vm.assume(reporter != address(inbox) && reporter != address(this));
        vm.assume(inbox.staked() < MAX_WEI && inbox.rewards(reporter) < MAX_WEI && inbox.l1MadeCount() == 0);
        vm.assume(l1Block != 0);
        vm.deal(address(inbox), 2 * MAX_WEI);
        vm.roll(l1Block);
    }

    function report(Evidence calldata given) internal returns (bool done) {
        bytes memory one = abi.encodePacked(given.one.r, given.one.s, given.one.v);
        bytes memory two = abi.encodePacked(given.two.r, given.two.s, given.two.v);
        bytes memory call =
            abi.encodeCall(inbox.slashEquivocation, (given.first, one, given.second, two, given.salt));
        vm.prank(REPORTER);
        (done,) = address(inbox).call(call);
    }

    /// @dev Two headers take the bond when they were not shown together before. They are marked then as their signer's,
    /// together, and no other two, nor anybody else's; the block of the first showing stands, and where the two could not be
    /// posted nothing is opened.
    /// @custom:halmos --loop 4
    function check_TheSameTwoHeadersTakeNoLaterBond(
        Evidence calldata given,
        address who,
        bytes32 other,
        uint64 l1Block
    ) public {
        assumePossible(REPORTER, l1Block);
        bytes32 low = inbox.hashHeader(given.first);
        bytes32 high = inbox.hashHeader(given.second);
        if (low > high) (low, high) = (high, low);
        bytes32 evidence = keccak256(abi.encode(given.first.number, low, high));
        bool marked = inbox.shownTogether(SEQUENCER, evidence);
        bool otherMarked = inbox.shownTogether(who, other);
        uint256 shownAt = inbox.equivocatedAt(given.first.number);
        uint256 stake = inbox.staked();
        uint256 reward = inbox.rewards(REPORTER);
        if (!report(given)) return;
        assert(!marked && low != high && given.first.number == given.second.number);
        assert(inbox.shownTogether(SEQUENCER, evidence));
        bool ofThese = who == SEQUENCER && other == evidence;
        assert(ofThese || inbox.shownTogether(who, other) == otherMarked);
        uint256 shownLater = inbox.equivocatedAt(given.first.number);
        assert(shownLater == shownAt || shownAt == 0 && shownLater == l1Block);
        assert(inbox.staked() == 0 && inbox.rewards(REPORTER) == reward + stake / 2);
        assert(address(inbox).balance == 2 * MAX_WEI - (stake - stake / 2));
    }

    /// @dev An accusation that nobody answered takes the bond once, when its window is over, and gives the accuser half of
    /// it and its stake.
    function check_AnOmissionIsSlashedOnce(
        address caller,
        bytes32 envelopeId,
        bytes32 itemHash,
        uint64 sealBy,
        uint64 l1Block
    ) public {
        FaultRecords.GivenPromise memory promised = promiseOf(envelopeId, itemHash, sealBy);
        bytes32 promiseId = idOf(promised);
        (address accuser, FaultRecords.State state, uint64 accusedAt) = inbox.accusations(promiseId);
        assumePossible(accuser, l1Block);
        uint256 stake = inbox.staked();
        uint256 open = inbox.openAccusations();
        uint256 reward = inbox.rewards(accuser);
        bool done = slashOmission(caller, promised);
        (, FaultRecords.State later,) = inbox.accusations(promiseId);
        if (!done) {
            assert(later == state && inbox.staked() == stake);
            return;
        }
        assert(state == FaultRecords.State.Open && later == FaultRecords.State.Slashed);
        assert(l1Block > uint256(accusedAt) + 7_200 && inbox.openAccusations() == open - 1);
        assert(inbox.staked() == 0 && inbox.rewards(accuser) == reward + stake / 2 + 0.1 ether);
        assert(!slashOmission(caller, promised));
    }

    /// @dev It touches no other accusation and no mark.
    function check_AnOmissionTouchesNothingElse(
        address caller,
        bytes32 envelopeId,
        uint64 sealBy,
        bytes32 other,
        bytes32 evidence
    ) public {
        FaultRecords.GivenPromise memory promised = promiseOf(envelopeId, 0, sealBy);
        vm.assume(other != idOf(promised));
        assumePossible(caller, 1 << 40);
        (, FaultRecords.State state,) = inbox.accusations(other);
        bool marked = inbox.shownTogether(SEQUENCER, evidence);
        slashOmission(caller, promised);
        (, FaultRecords.State later,) = inbox.accusations(other);
        assert(later == state && inbox.shownTogether(SEQUENCER, evidence) == marked);
    }

    function promiseOf(bytes32 envelopeId, bytes32 itemHash, uint64 sealBy)
        internal
        pure
        returns (FaultRecords.GivenPromise memory)
    {
        return FaultRecords.GivenPromise({
            sequencer: SEQUENCER, envelopeId: envelopeId, itemHash: itemHash, sealBy: sealBy
        });
    }

    function idOf(FaultRecords.GivenPromise memory promised) internal pure returns (bytes32) {
        bytes32 promiseHash = Promises.hash(promised.envelopeId, promised.itemHash, promised.sealBy);
        return keccak256(abi.encode(promised.sequencer, promiseHash));
    }

    function slashOmission(address caller, FaultRecords.GivenPromise memory promised)
        internal
        returns (bool done)
    {
        vm.prank(caller);
        (done,) = address(inbox).call(abi.encodeCall(inbox.slashOmission, (promised)));
    }
}
