// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { HintRegistry } from "../src/HintRegistry.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { HintFixture } from "./helpers/HintFixture.sol";

/// @dev Drives one deployment at random and keeps its own books: which posting is right, open, dead, final, what ether
/// went where. Every call's outcome is foretold from them.
contract HintRegistryHandler is HintFixture {
    uint160 public constant PUBLISHERS = 3;
    uint160 public constant CHALLENGERS = 2;

    struct Known {
        uint64 run;
        address publisher;
        uint256 postedAt;
        bool open;
        bool dead;
        bool right;
        // The entry that is wrong, if one is.
        uint256 batch;
        uint32 index;
        uint8 kind;
        bytes16 key;
    }

    /// @dev Postings by id, from 1.
    Known[] public known;
    /// @dev Runs in order: run `r` is batches `10 r + 1` and `10 r + 2`.
    uint256[] public runPostedAt;
    mapping(uint64 last => uint64 id) public finalOf;
    mapping(uint64 last => bool) public isVoid;
    /// @dev Postings that are open or dead.
    mapping(uint64 last => uint256) public openOf;
    /// @dev The newest strike that made a posting dead which was dropped since.
    mapping(uint64 last => uint256) public struckAtOf;
    /// @dev The posting of these hints, open or dead.
    mapping(bytes32 => uint64 id) private openHints;
    mapping(address publisher => uint256) public bond;
    mapping(address publisher => uint256) public openBy;
    mapping(address publisher => uint256) private lastStrike;

    uint256 public paidIn;
    uint256 public paidOut;
    uint256 public burnt;
    uint256 public honestBond;
    uint256 public struckHonest;
    uint256 public struck;
    uint256 public killed;
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

    function last(uint256 r) internal pure returns (uint64) {
        return uint64(10 * r + 2);
    }

    // Money

    function deposit(uint256 who, uint256 amount) external {
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
        if (!allowed) vm.expectRevert();
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
        if (owed == 0) vm.expectRevert();
        vm.prank(account);
        hints.claimReward();
        paidOut += owed;
    }

    // Postings

    function postRight(uint256 who, uint256 r) external {
        if (runPostedAt.length == 0) return;
        r %= runPostedAt.length;
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
        k.right = item.kind == k.kind && item.key == k.key;
        // Never the honest one.
        address p = who % 2 == 0 ? publisher(1) : publisher(2);
        postKnown(p, r, b, entriesOf(b, k), k);
    }

    function entriesOf(Built memory b, Known memory k) internal pure returns (bytes[] memory entries) {
        entries = rightEntries(b);
        if (!k.right) setEntry(entries, k.batch, k.index, k.kind, k.key);
    }

    function postKnown(address p, uint256 r, Built memory b, bytes[] memory entries, Known memory k)
        internal
    {
        bytes32 hash = keccak256(abi.encode(r, entries));
        uint64 twin = openHints[hash];
        bool allowed = finalOf[last(r)] == 0 && !isVoid[last(r)] && !known[twin].open && bond[p] >= BOND;
        bytes memory data = encode(entries);
        if (!allowed) vm.expectRevert();
        uint64 id = post(p, b.run, data);
        if (!allowed) return;
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

    function challengeAny(uint256 who, uint256 chosen, uint256 batch, uint256 index, bool aim) external {
        if (known.length == 1) return;
        uint64 id = uint64(bound(chosen, 1, known.length - 1));
        Known storage k = known[id];
        Built memory b = rebuilt(k.run);
        bool guilty = aim && !k.right;
        uint256 place;
        if (guilty) {
            (batch, place) = (k.batch, k.index);
        } else {
            batch = b.items[0].length == 0 ? 1 : batch % 2;
            place = index % b.items[batch].length;
            guilty = !k.right && batch == k.batch && place == k.index;
        }
        HintRegistry.Challenge memory c = challengeOf(b, entriesOf(b, k), batch, uint32(place));
        address who_ = challengerOf(who);
        commitTo(who_, id, c);
        bool allowed = k.open;
        if (!allowed) vm.expectRevert();
        challenge(who_, id, c);
        if (!allowed) return;
        paidIn += STAKE;
        checkEqual(hints.isOpen(id) ? 0 : 1, guilty ? 1 : 0, "struck iff wrong");
        if (!guilty) {
            refuted++;
            return;
        }
        openBy[k.publisher]--;
        closed(id, b);
        strike(k.publisher);
    }

    /// @dev All that were open are dead.
    function strike(address p) internal {
        burnt += bond[p] - bond[p] / 2;
        bond[p] = 0;
        openBy[p] = 0;
        lastStrike[p] = block.number;
        for (uint64 id = 1; id < known.length; id++) {
            if (known[id].publisher != p || !known[id].open) continue;
            (known[id].open, known[id].dead) = (false, true);
            killed++;
        }
        struck++;
        if (p == publisher(0)) struckHonest++;
    }

    /// @dev Any word of a good challenge replaced: never strikes what is right.
    function challengeMangled(uint256 who, uint256 chosen, uint256 position, bytes32 word) external {
        if (known.length == 1) return;
        uint64 id = uint64(bound(chosen, 1, known.length - 1));
        Known storage k = known[id];
        if (!k.right || !k.open) return;
        Built memory b = rebuilt(k.run);
        HintRegistry.Challenge memory c = challengeOf(b, entriesOf(b, k), 1, 0);
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
        check(hints.isOpen(id), "struck");
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
            if (known[id].dead) dropId(id);
            else if (!known[id].open) continue;
            else if (finalOf[last(r)] == 0) finalizeId(id);
            else releaseId(id);
        }
    }

    function finalizeId(uint64 id) internal {
        bool allowed = id != 0 && id < known.length && known[id].open;
        uint64 run;
        if (allowed) {
            run = last(known[id].run);
            allowed = block.number >= known[id].postedAt + CHALLENGE_WINDOW && finalOf[run] == 0;
        }
        if (!allowed) vm.expectRevert();
        hints.finalize(id);
        if (!allowed) return;
        finalOf[run] = id;
        openBy[known[id].publisher]--;
        closed(id, rebuilt(known[id].run));
    }

    function releaseId(uint64 id) internal {
        bool allowed = id != 0 && id < known.length && known[id].open;
        if (allowed) {
            allowed =
                block.number >= known[id].postedAt + CHALLENGE_WINDOW && finalOf[last(known[id].run)] != 0;
        }
        if (!allowed) vm.expectRevert();
        hints.release(id);
        if (!allowed) return;
        openBy[known[id].publisher]--;
        closed(id, rebuilt(known[id].run));
    }

    function dropId(uint64 id) internal {
        bool allowed = id < known.length && known[id].dead;
        if (!allowed) vm.expectRevert();
        hints.drop(id);
        if (allowed) dropped(id);
    }

    function dropped(uint64 id) internal {
        uint64 run = last(known[id].run);
        uint256 strikeAt = lastStrike[known[id].publisher];
        if (strikeAt > struckAtOf[run]) struckAtOf[run] = strikeAt;
        known[id].dead = false;
        closed(id, rebuilt(known[id].run));
    }

    function voidRun(uint256 r) external {
        if (runPostedAt.length == 0) return;
        r %= runPostedAt.length;
        RunReference memory run = rebuilt(r).run;
        bool allowed = block.number >= runPostedAt[r] + HINT_DEADLINE
            && block.number >= struckAtOf[last(r)] + HINT_DEADLINE && openOf[last(r)] == 0
            && finalOf[last(r)] == 0 && !isVoid[last(r)];
        if (!allowed) vm.expectRevert();
        hints.voidUnreleased(run);
        if (allowed) isVoid[last(r)] = true;
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
        checkEqual(handler.struckHonest(), 0, "struck");
    }

    function invariantOpenPostingsAreCountedAndCovered() public view {
        uint256[] memory open = new uint256[](handler.PUBLISHERS());
        for (uint256 id = 1; id < handler.knownCount(); id++) {
            (uint64 run, address publisher,, bool isOpen, bool isDead,,,,,) = handler.known(id);
            check(hints.isOpen(uint64(id)) == isOpen, "open");
            check(!isDead || hints.finalPosting(10 * run + 2) != id, "dead and final");
            if (isOpen) open[uint160(publisher) - 0x10000]++;
        }
        for (uint256 i = 0; i < open.length; i++) {
            (uint128 bond, uint32 counted,,) = hints.publishers(handler.publisher(i));
            checkEqual(counted, open[i], "open postings");
            check(open[i] == 0 || bond >= BOND, "no bond answers for them");
        }
    }

    function invariantRunsAreAsInTheBooks() public view {
        for (uint256 r = 0; r < handler.runCount(); r++) {
            uint64 last = uint64(10 * r + 2);
            (, uint64 finalId, uint32 open, bool isVoid, uint32 struckAt) = hints.runs(last);
            checkEqual(open, handler.openOf(last), "open postings");
            checkEqual(struckAt, handler.struckAtOf(last), "last strike");
            checkEqual(finalId, handler.finalOf(last), "the final posting never changes");
            check(isVoid == handler.isVoid(last), "void");
            check(!isVoid || (finalId == 0 && open == 0), "void and not");
            check((hints.finalRoot(last) != 0) == (finalId != 0), "a final root");
        }
    }
}
