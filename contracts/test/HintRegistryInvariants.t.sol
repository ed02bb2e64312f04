// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Challenge, HintEvidence } from "../src/HintEvidence.sol";
import { HintRegistry } from "../src/HintRegistry.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { HintFixture } from "./helpers/HintFixture.sol";

/// @dev Drives one deployment at random and keeps ghost state: which posting is right, open, invalidated, final, what
/// ether went where. Every call's outcome is foretold from it.
///
/// Of every second run the members give no release: nobody can post right hints for it or has a key to show, but its
/// postings may be anything else, all malformed for one.
contract HintRegistryHandler is HintFixture {
    uint160 public constant PUBLISHERS = 3;
    uint160 public constant CHALLENGERS = 2;

    struct Known {
        uint64 run;
        address publisher;
        uint256 postedAt;
        bool open;
        bool invalidated;
        bool right;
        // The entry that is wrong, if one is.
        uint256 batch;
        uint32 index;
        uint8 kind;
        bytes16 key;
        // Of an item that is wrongly called malformed, the right release is shown.
        bool released;
        // All accepted items are called malformed, with releases that somebody made up.
        bool all;
    }

    /// @dev Postings by id, from 1.
    Known[] public known;
    /// @dev Runs in order: run `r` is batches `10 r + 1` and `10 r + 2`.
    uint256[] public runPostedAt;
    mapping(uint64 last => uint64 id) public finalOf;
    mapping(uint64 last => bool) public isVoid;
    /// @dev Postings that are open or invalidated.
    mapping(uint64 last => uint256) public openOf;
    /// @dev The newest slashing of a posting of the run, or that invalidated one which was dropped since.
    mapping(uint64 last => uint256) public slashedAtOf;
    /// @dev The posting of these hints, open or invalidated.
    mapping(bytes32 => uint64 id) private openHints;
    mapping(address publisher => uint256) public bond;
    mapping(address publisher => uint256) public openBy;
    mapping(address publisher => uint256) private lastSlashing;

    uint256 public paidIn;
    uint256 public paidOut;
    uint256 public burnt;
    uint256 public honestBond;
    uint256 public slashedHonest;
    uint256 public slashings;
    uint256 public invalidations;
    uint256 public refuted;

    constructor() {
        deployHints();
        known.push();
    }

    function theHints() external view returns (HintRegistry) {
        return hints;
    }

    /// @dev Publisher 0 is the honest one.
    function publisher(uint256 i) public pure returns (address) {
        return address(uint160(0x10000) + uint160(i % PUBLISHERS));
    }

    function challengerOf(uint256 i) public pure returns (address) {
        return address(uint160(0x20000) + uint160(i % CHALLENGERS));
    }

    function knownCount() external view returns (uint256) {
        return known.length;
    }

    function runCount() external view returns (uint256) {
        return runPostedAt.length;
    }

    // Runs

    function newRun() external {
        uint256 r = runPostedAt.length;
        if (r == 6) return;
        runPostedAt.push(block.number);
        rebuilt(r);
    }

    /// @dev Run `r`, the same every time.
    function rebuilt(uint256 r) internal returns (Built memory b) {
        uint256[] memory counts = new uint256[](2);
        (counts[0], counts[1]) = (r % 4, 4);
        b = buildRun(uint64(10 * r + 1), counts, r);
        b.run.postedAt = uint64(runPostedAt[r]);
        inbox.tell(b.run);
    }

    /// @dev Every sort of item is there.
    function sortOf(uint256, uint256 index) internal pure override returns (uint256) {
        return index == 0 ? 0 : index + 3 > 7 ? 7 : index == 1 ? 4 : index + 4;
    }

    /// @dev Whether the members give no release of run `r`.
    function withheld(uint256 r) internal pure returns (bool) {
        return r % 2 == 1;
    }

    function last(uint256 r) internal pure returns (uint64) {
        return uint64(10 * r + 2);
    }

    // Money

    function deposit(uint256 who, uint256 amount) public {
        amount = bound(amount, 1, 4 ether);
        fund(publisher(who), amount);
        paidIn += amount;
        bond[publisher(who)] += amount;
        if (publisher(who) == publisher(0)) honestBond += amount;
    }

    function withdraw(uint256 who, uint256 amount) external {
        address p = publisher(who);
        uint256 kept = openBy[p] == 0 ? 0 : BOND;
        amount = bound(amount, 0, bond[p]);
        bool allowed = amount != 0 && amount + kept <= bond[p];
        bytes memory reason = amount == 0
            ? abi.encodeWithSelector(HintRegistry.ZeroAmount.selector)
            : abi.encodeWithSelector(HintRegistry.BondTooLow.selector, bond[p] - kept, amount);
        if (!allowed) vm.expectRevert(reason);
        vm.prank(p);
        hints.withdrawBond(uint128(amount));
        if (!allowed) return;
        paidOut += amount;
        bond[p] -= amount;
        if (p == publisher(0)) honestBond -= amount;
    }

    function claim(uint256 who, bool asPublisher) external {
        address account = asPublisher ? publisher(who) : challengerOf(who);
        uint256 owed = hints.rewards(account);
        if (owed == 0) vm.expectRevert(abi.encodeWithSelector(HintRegistry.ZeroAmount.selector));
        vm.prank(account);
        hints.claimReward();
        paidOut += owed;
    }

    // Postings

    function postRight(uint256 who, uint256 r) public {
        if (runPostedAt.length == 0) return;
        r %= runPostedAt.length;
        if (withheld(r)) return;
        Built memory b = rebuilt(r);
        Known memory k;
        k.right = true;
        postKnown(publisher(who), r, b, rightEntries(b), k);
    }

    function postWrong(uint256 who, uint256 r, uint256 batch, uint256 index, uint8 kind, bytes16 key)
        external
    {
        if (runPostedAt.length == 0) return;
        r %= runPostedAt.length;
        Built memory b = rebuilt(r);
        Known memory k;
        k.batch = b.items[0].length == 0 ? 1 : batch % 2;
        k.index = uint32(index % b.items[k.batch].length);
        k.kind = kind % 4;
        k.key = k.kind == 1 || key[0] < 0x20 ? key : bytes16(0);
        Item memory item = b.items[k.batch][k.index];
        k.released = key[15] & 0x01 == 0;
        // Of a malformed one the right place, or the next, where nothing is.
        if (k.kind == 2) {
            k.key = item.kind != 2 ? bytes16(0) : bytes16(uint128(item.key) + (k.released ? 0 : 1));
        }
        k.right = item.kind == k.kind && item.key == k.key;
        if (k.right && withheld(r)) return;
        postKnown(dishonest(who), r, b, entriesOf(b, k), k);
    }

    function claimAllMalformed(uint256 who, uint256 r) external {
        if (runPostedAt.length == 0) return;
        r %= runPostedAt.length;
        Built memory b = rebuilt(r);
        Known memory k;
        k.all = true;
        k.batch = 1;
        postKnown(dishonest(who), r, b, entriesOf(b, k), k);
    }

    function dishonest(uint256 who) internal pure returns (address) {
        return who % 2 == 0 ? publisher(1) : publisher(2);
    }

    function entriesOf(Built memory b, Known memory k) internal view returns (BatchHints[] memory entries) {
        if (k.all) return allMalformed(b);
        entries = rightEntries(b);
        if (k.right) return entries;
        Item memory item = b.items[k.batch][k.index];
        if (k.kind != 2 || item.kind == 2) {
            setEntry(entries, k.batch, k.index, k.kind, k.key);
        } else {
            callMalformed(
                entries, k.batch, k.index, k.released && item.kind == 1 ? item.release : new bytes(48)
            );
        }
    }

    /// @dev Whether this entry of a posting is wrong.
    function isWrong(Known memory k, Built memory b, uint256 batch, uint256 index)
        internal
        pure
        returns (bool)
    {
        if (k.all) return b.items[batch][index].kind != 0;
        return !k.right && batch == k.batch && index == k.index;
    }

    function postKnown(address p, uint256 r, Built memory b, BatchHints[] memory entries, Known memory k)
        internal
    {
        bytes32 hash = keccak256(abi.encode(r, entries));
        uint64 twin = openHints[hash];
        bytes memory data = encode(entries);
        bytes memory reason = settledReason(r);
        if (reason.length == 0 && known[twin].open) {
            reason = abi.encodeWithSelector(
                HintRegistry.SameHintsOpen.selector, last(r), rootOf(b.run.first, entries)
            );
        } else if (reason.length == 0 && bond[p] < BOND) {
            reason = abi.encodeWithSelector(HintRegistry.BondTooLow.selector, bond[p], BOND);
        }
        if (reason.length != 0) vm.expectRevert(reason);
        uint64 id = post(p, b.run, data);
        if (reason.length != 0) return;
        checkEqual(id, known.length, "id");
        if (twin != 0) dropped(twin);
        k.run = uint64(r);
        k.publisher = p;
        k.postedAt = block.number;
        k.open = true;
        known.push(k);
        openOf[last(r)]++;
        openBy[p]++;
        openHints[hash] = id;
    }

    /// @dev Why a run takes no more postings; empty while it does.
    function settledReason(uint256 r) internal view returns (bytes memory) {
        uint64 id = finalOf[last(r)];
        if (id != 0) return abi.encodeWithSelector(HintRegistry.RunIsFinal.selector, last(r), id);
        if (isVoid[last(r)]) return abi.encodeWithSelector(HintRegistry.RunIsVoid.selector, last(r));
        return "";
    }

    /// @dev Why a posting is not open; empty while it is.
    function closedReason(uint64 id) internal view returns (bytes memory) {
        if (id != 0 && id < known.length && known[id].open) return "";
        bool invalidated = id < known.length && known[id].invalidated;
        return abi.encodeWithSelector(
            invalidated ? HintRegistry.PublisherSlashed.selector : HintRegistry.NotOpen.selector, id
        );
    }

    function challengeAny(uint256 who, uint256 chosen, uint256 batch, uint256 index, bool aim) public {
        if (known.length == 1) return;
        uint64 id = uint64(bound(chosen, 1, known.length - 1));
        Known storage k = known[id];
        Built memory b = rebuilt(k.run);
        if (aim && !k.right) {
            (batch, index) = (k.batch, k.index);
        } else {
            batch = b.items[0].length == 0 ? 1 : batch % 2;
            index %= b.items[batch].length;
        }
        bool guilty = isWrong(k, b, batch, index);
        Challenge memory c = challengeOf(b, entriesOf(b, k), batch, uint32(index));
        // Nobody has a key, unless by a release that was posted.
        if (withheld(k.run) && !k.released) c.key = 0;
        address who_ = challengerOf(who);
        commitTo(who_, id, c);
        bytes memory reason = closedReason(id);
        if (reason.length != 0) vm.expectRevert(reason);
        challenge(who_, id, c);
        if (reason.length != 0) return;
        paidIn += STAKE;
        checkEqual(hints.isOpen(id) ? 0 : 1, guilty ? 1 : 0, "slashed iff wrong");
        if (!guilty) {
            refuted++;
            return;
        }
        openBy[k.publisher]--;
        closed(id, b);
        slashedAtOf[last(k.run)] = block.number;
        slash(k.publisher);
    }

    /// @dev All that were open are invalidated.
    function slash(address p) internal {
        burnt += bond[p] - bond[p] / 2;
        bond[p] = 0;
        openBy[p] = 0;
        lastSlashing[p] = block.number;
        for (uint64 id = 1; id < known.length; id++) {
            if (known[id].publisher != p || !known[id].open) continue;
            (known[id].open, known[id].invalidated) = (false, true);
            invalidations++;
        }
        slashings++;
        if (p == publisher(0)) slashedHonest++;
    }

    /// @dev Any word of a good challenge replaced: never slashes what is right.
    function challengeMangled(uint256 who, uint256 chosen, uint256 position, bytes32 word) external {
        if (known.length == 1) return;
        uint64 id = uint64(bound(chosen, 1, known.length - 1));
        Known storage k = known[id];
        if (!k.right || !k.open) return;
        Built memory b = rebuilt(k.run);
        Challenge memory c = challengeOf(b, entriesOf(b, k), 1, 0);
        address who_ = challengerOf(who);
        commitTo(who_, id, c);
        bytes memory data = abi.encodeCall(HintRegistry.challenge, (id, c, SALT));
        position = 36 + 32 * bound(position, 1, (data.length - 68) / 32);
        assembly ("memory-safe") {
            mstore(add(add(data, 32), position), word)
        }
        vm.prank(who_);
        (bool done,) = address(hints).call{ value: STAKE, gas: 5_000_000 }(data);
        if (done) paidIn += STAKE;
        check(hints.isOpen(id), "slashed");
    }

    function finalize(uint256 chosen) external {
        finalizeId(uint64(bound(chosen, 0, known.length)));
    }

    function release(uint256 chosen) external {
        releaseId(uint64(bound(chosen, 0, known.length)));
    }

    function drop(uint256 chosen) external {
        dropId(uint64(bound(chosen, 0, known.length)));
    }

    /// @dev Lets the windows of all open postings pass and closes those of one run.
    function settle(uint256 r) external {
        if (runPostedAt.length == 0) return;
        r %= runPostedAt.length;
        vm.roll(block.number + CHALLENGE_WINDOW);
        for (uint64 id = 1; id < known.length; id++) {
            if (known[id].run != r) continue;
            if (known[id].invalidated) dropId(id);
            else if (!known[id].open) continue;
            else if (finalOf[last(r)] == 0) finalizeId(id);
            else releaseId(id);
        }
    }

    function finalizeId(uint64 id) internal {
        bytes memory reason = unripeReason(id);
        if (reason.length == 0) reason = settledReason(known[id].run);
        if (reason.length != 0) vm.expectRevert(reason);
        hints.finalize(id);
        if (reason.length != 0) return;
        finalOf[last(known[id].run)] = id;
        openBy[known[id].publisher]--;
        closed(id, rebuilt(known[id].run));
    }

    /// @dev Why a posting is not open or still in its window.
    function unripeReason(uint64 id) internal view returns (bytes memory reason) {
        reason = closedReason(id);
        if (reason.length != 0) return reason;
        uint256 from = known[id].postedAt + CHALLENGE_WINDOW;
        if (block.number < from) return abi.encodeWithSelector(HintRegistry.TooEarly.selector, from);
    }

    function releaseId(uint64 id) internal {
        bytes memory reason = unripeReason(id);
        if (reason.length == 0 && finalOf[last(known[id].run)] == 0) {
            reason = abi.encodeWithSelector(HintEvidence.RunNotFinal.selector, last(known[id].run));
        }
        if (reason.length != 0) vm.expectRevert(reason);
        hints.release(id);
        if (reason.length != 0) return;
        openBy[known[id].publisher]--;
        closed(id, rebuilt(known[id].run));
    }

    function dropId(uint64 id) internal {
        bool allowed = id < known.length && known[id].invalidated;
        bytes4 reason = closedReason(id).length == 0
            ? HintRegistry.NotInvalidated.selector
            : HintRegistry.NotOpen.selector;
        if (!allowed) vm.expectRevert(abi.encodeWithSelector(reason, id));
        hints.drop(id);
        if (allowed) dropped(id);
    }

    function dropped(uint64 id) internal {
        uint64 run = last(known[id].run);
        uint256 slashingAt = lastSlashing[known[id].publisher];
        if (slashingAt > slashedAtOf[run]) slashedAtOf[run] = slashingAt;
        known[id].invalidated = false;
        closed(id, rebuilt(known[id].run));
    }

    function voidRun(uint256 r) public {
        if (runPostedAt.length == 0) return;
        r %= runPostedAt.length;
        RunReference memory run = rebuilt(r).run;
        uint256 from = runPostedAt[r] > slashedAtOf[last(r)] ? runPostedAt[r] : slashedAtOf[last(r)];
        from += HINT_DEADLINE;
        bytes memory reason = settledReason(r);
        if (reason.length == 0 && block.number < from) {
            reason = abi.encodeWithSelector(HintRegistry.TooEarly.selector, from);
        } else if (reason.length == 0 && openOf[last(r)] != 0) {
            reason = abi.encodeWithSelector(HintRegistry.PostingsOpen.selector, last(r), openOf[last(r)]);
        }
        if (reason.length != 0) vm.expectRevert(reason);
        hints.voidUnreleased(run);
        if (reason.length == 0) isVoid[last(r)] = true;
    }

    /// @dev Whatever others did and members withhold: somebody without any secret settles the run, one way or another.
    function moveOn(uint256 r) external {
        if (runPostedAt.length == 0) return;
        r %= runPostedAt.length;
        for (uint64 id = 1; id < known.length; id++) {
            if (known[id].run != r) continue;
            if (known[id].open && !known[id].right) challengeAny(0, id, 0, 0, true);
        }
        for (uint64 id = 1; id < known.length; id++) {
            if (known[id].run == r && known[id].invalidated) dropId(id);
        }
        if (settledReason(r).length != 0) return;
        if (openOf[last(r)] == 0 && !withheld(r)) {
            deposit(0, BOND);
            postRight(0, r);
        }
        vm.roll(block.number + CHALLENGE_WINDOW);
        if (openOf[last(r)] == 0) voidRun(r);
        for (uint64 id = 1; id < known.length && finalOf[last(r)] == 0; id++) {
            if (known[id].run == r && known[id].open) finalizeId(id);
        }
        check(settledReason(r).length != 0, "the chain stands still");
        check(!isVoid[last(r)] || withheld(r), "void though it was released");
    }

    function wait_(uint256 blocks) external {
        vm.roll(block.number + bound(blocks, 1, 4_000));
    }

    function closed(uint64 id, Built memory b) internal {
        Known storage k = known[id];
        k.open = false;
        openOf[last(k.run)]--;
        delete openHints[keccak256(abi.encode(uint256(k.run), entriesOf(b, k)))];
    }
}

contract HintRegistryInvariantsTest is HintFixture {
    HintRegistryHandler internal handler;

    function setUp() public {
        vm.roll(1_000_000);
        handler = new HintRegistryHandler();
        hints = handler.theHints();
        handler.newRun();
        handler.deposit(0, 4 ether);
        handler.deposit(1, 4 ether);
        handler.deposit(2, 4 ether);
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function afterInvariant() public {
        for (uint256 r = 0; r < handler.runCount(); r++) {
            handler.moveOn(r);
        }
    }

    function invariantEtherIsAccountedFor() public view {
        uint256 owed = 0;
        for (uint256 i = 0; i < handler.PUBLISHERS(); i++) {
            (uint128 total, uint128 locked) = hints.bondOf(handler.publisher(i));
            check(locked <= total, "locked above the bond");
            checkEqual(total, handler.bond(handler.publisher(i)), "bond");
            owed += total + hints.rewards(handler.publisher(i));
        }
        for (uint256 i = 0; i < handler.CHALLENGERS(); i++) {
            owed += hints.rewards(handler.challengerOf(i));
        }
        checkEqual(address(hints).balance, owed, "held = bonds + rewards");
        checkEqual(handler.paidIn(), owed + handler.burnt() + handler.paidOut(), "in = held + burnt + out");
    }

    function invariantTheHonestKeepTheirBond() public view {
        (uint128 total,) = hints.bondOf(handler.publisher(0));
        checkEqual(total, handler.honestBond(), "bond");
        checkEqual(handler.slashedHonest(), 0, "slashed");
    }

    function invariantOpenPostingsAreCountedAndCovered() public view {
        uint256[] memory open = new uint256[](handler.PUBLISHERS());
        for (uint256 id = 1; id < handler.knownCount(); id++) {
            (uint64 run, address publisher,, bool isOpen, bool isInvalidated,,,,,,,) = handler.known(id);
            check(hints.isOpen(uint64(id)) == isOpen, "open");
            check(!isInvalidated || hints.finalPosting(10 * run + 2) != id, "invalidated and final");
            if (isOpen) open[uint160(publisher) - 0x10000]++;
        }
        for (uint256 i = 0; i < open.length; i++) {
            (uint128 bond, uint32 counted,,) = hints.publishers(handler.publisher(i));
            checkEqual(counted, open[i], "open postings");
            check(open[i] == 0 || bond >= BOND, "no bond answers for them");
        }
    }

    function invariantRunsAreAsInTheGhostState() public view {
        for (uint256 r = 0; r < handler.runCount(); r++) {
            uint64 last = uint64(10 * r + 2);
            (, uint64 finalId, uint32 open, bool isVoid, uint32 slashedAt) = hints.runs(last);
            checkEqual(open, handler.openOf(last), "open postings");
            checkEqual(slashedAt, handler.slashedAtOf(last), "last slashing");
            checkEqual(finalId, handler.finalOf(last), "the final posting never changes");
            check(isVoid == handler.isVoid(last), "void");
            check(!isVoid || (finalId == 0 && open == 0), "void and not");
            check((hints.finalRoot(last) != 0) == (finalId != 0), "a final root");
        }
    }
}
