// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "../src/CommitReveal.sol";
import { Challenge, HintEvidence } from "../src/HintEvidence.sol";
import { HintRegistry } from "../src/HintRegistry.sol";
import { RunReference } from "../src/interfaces/IBlindedInbox.sol";
import { Envelopes } from "../src/libraries/Envelopes.sol";
import { HintFixture } from "./helpers/HintFixture.sol";
import { MockHintVerifier } from "./helpers/HintMocks.sol";

/// @dev A posting of two batches whose items are of every sort, at known places.
contract HintChallengesTest is HintFixture {
    /// @dev Places of the sorts of items in both batches.
    uint32 internal constant KEYED = 0;
    uint32 internal constant MALFORMED = 1;
    uint32 internal constant SKIPPED = 2;
    uint32 internal constant FORCED = 3;
    /// @dev The publisher's bond; odd, so that halves are told apart.
    uint256 internal constant ALL = 3 * BOND;

    event RewardClaimed(address indexed account, uint256 amount);
    event HintsSlashed(
        uint64 indexed id,
        uint64 indexed runLast,
        address indexed challenger,
        address publisher,
        uint8 reason,
        uint64 number,
        uint32 index,
        uint256 reward,
        uint256 burnt
    );
    event ChallengeFailed(uint64 indexed id, address indexed challenger);

    uint256 internal burnt;

    function setUp() public {
        vm.roll(1_000_000);
        deployHints();
        fund(PUBLISHER, ALL);
        burnt = address(0).balance;
        // So that its points are computed once.
        sample();
    }

    /// @dev Batches 7 and 8: an item of every sort, then more.
    function sample() internal returns (Built memory) {
        uint256[] memory counts = new uint256[](2);
        (counts[0], counts[1]) = (6, 131);
        return buildRun(7, counts, 0);
    }

    function sortOf(uint256 seed, uint256 index) internal pure override returns (uint256) {
        if (index == KEYED) return 0;
        if (index == MALFORMED) return 4;
        if (index == SKIPPED) return 6;
        // Forced transactions are short; most of the second batch is there only to fill a chunk.
        if (index == FORCED || (index > 8 && index < 126)) return 7;
        return seed % 8;
    }

    // Every outcome

    function slashes(uint256 batch, uint32 index, uint8 kind, bytes16 key, uint8 reason) internal {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        setEntry(entries, batch, index, kind, key);
        slashes(b, entries, challengeOf(b, entries, batch, index), reason);
    }

    function slashes(Built memory b, BatchHints[] memory entries, Challenge memory c, uint8 reason) internal {
        uint64 id = post(PUBLISHER, b.run, encode(entries));
        commitTo(CHALLENGER, id, c);
        vm.expectEmit(true, true, true, true, address(hints));
        emit HintsSlashed(
            id, 8, CHALLENGER, PUBLISHER, reason, c.header.number, c.index, ALL / 2, ALL - ALL / 2
        );
        challenge(CHALLENGER, id, c);
        checkBond(PUBLISHER, 0, 0);
        checkEqual(hints.rewards(CHALLENGER), ALL / 2 + STAKE, "reward and stake");
        checkEqual(address(0).balance - burnt, ALL - ALL / 2, "burnt");
        checkEqual(address(hints).balance, ALL / 2 + STAKE, "held");
        (,, uint32 open,,) = hints.runs(8);
        checkEqual(open, 0, "open");

        // Slashed for good, the run free for others.
        check(!hints.isOpen(id), "slashed");
        vm.roll(block.number + 2 * CHALLENGE_WINDOW);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, id));
        hints.finalize(id);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, id));
        hints.release(id);
        fund(PUBLISHER, BOND);
        uint64 next = post(PUBLISHER, b.run, encode(rightEntries(b)));
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(next);
        checkEqual(hints.finalPosting(8), next, "final");
        vm.expectEmit(true, true, true, true, address(hints));
        emit RewardClaimed(CHALLENGER, ALL / 2 + STAKE);
        vm.prank(CHALLENGER);
        hints.claimReward();
        checkEqual(CHALLENGER.balance, ALL / 2 + STAKE, "claimed");
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.ZeroAmount.selector));
        vm.prank(CHALLENGER);
        hints.claimReward();
    }

    function testSlashesAWrongKey() public {
        slashes(0, KEYED, 1, bytes16("another"), 5);
    }

    function testSlashesAKeyOfAMalformedOne() public {
        slashes(1, MALFORMED, 1, bytes16("made up"), 5);
    }

    /// @dev The registry has no keys for any epoch but the header's.
    function onlyTheHeadersEpochHasKeys() internal {
        vm.mockCallRevert(
            address(committees), abi.encodeWithSelector(committees.encryptionKey.selector, 0), ""
        );
        vm.mockCallRevert(address(committees), abi.encodeWithSelector(committees.h1.selector, 0), "");
    }

    function testKeysAreJudgedByTheirHeadersEpoch() public {
        onlyTheHeadersEpochHasKeys();
        slashes(0, KEYED, 1, bytes16("another"), 5);
    }

    function testReleasesAreJudgedByTheirHeadersEpoch() public {
        onlyTheHeadersEpochHasKeys();
        slashesMalformed(1, KEYED, sample().items[1][MALFORMED].release, 9);
    }

    /// @dev With this release.
    function slashesMalformed(uint256 batch, uint32 index, bytes memory release, uint8 reason) internal {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        callMalformed(entries, batch, index, release);
        Challenge memory c = challengeOf(b, entries, batch, index);
        // Who has no key has it slashed all the same.
        if (reason != 6) c.key = 0;
        slashes(b, entries, c, reason);
    }

    function testSlashesAFalseMalformedClaim() public {
        slashesMalformed(1, KEYED, sample().items[1][KEYED].release, 6);
    }

    // Releases

    /// @dev Rule S-3.
    function testSlashesAFalseMalformedClaimByItsRelease() public {
        slashesMalformed(1, KEYED, sample().items[1][MALFORMED].release, 9);
    }

    function testSlashesAReleaseOfAnotherCiphertext() public {
        slashesMalformed(0, MALFORMED, sample().items[1][MALFORMED].release, 9);
    }

    function testSlashesTheCiphertextForARelease() public {
        slashesMalformed(0, MALFORMED, caller.decode(sample().items[0][MALFORMED].data).c, 9);
    }

    function testSlashesWhatIsNoPoint() public {
        slashesMalformed(0, MALFORMED, new bytes(48), 9);
    }

    function testSlashesTheIdentity() public {
        bytes memory identity = new bytes(48);
        identity[0] = 0xc0;
        slashesMalformed(0, MALFORMED, identity, 9);
    }

    function testSlashesAPointOutsideTheSubgroup() public {
        // (0, 2), of order 3.
        bytes memory point = new bytes(48);
        point[0] = 0x80;
        slashesMalformed(0, MALFORMED, point, 9);
    }

    function testSlashesANonCanonicalPoint() public {
        // x = p + 4.
        slashesMalformed(
            0,
            MALFORMED,
            hex"9a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaaf",
            9
        );
    }

    function slashesPlace(uint256 batch, uint32 index, uint128 place, uint8 reason) internal {
        slashes(batch, index, 2, bytes16(place), reason);
    }

    function testSlashesAPlaceBehindTheReleases() public {
        slashesPlace(0, MALFORMED, uint128(sample().items[0].length), 8);
    }

    function testSlashesAPlaceBehindTheChunksOfReleases() public {
        slashesPlace(1, MALFORMED, 128, 8);
    }

    function testSlashesThePlaceOutOfRange() public {
        slashesPlace(1, MALFORMED, type(uint128).max, 8);
    }

    function testSlashesAMalformedItemWithoutAnyRelease() public {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        entries[0].releases = "";
        slashes(b, entries, challengeOf(b, entries, 0, MALFORMED), 8);
    }

    /// @dev In a list of several chunks, too: they are shown one at a time.
    function testReleasesInALongList() public {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        bytes memory right = b.items[0][MALFORMED].release;
        bytes memory other = b.items[1][MALFORMED].release;
        entries[0].releases = new bytes(48 * 127);
        callMalformed(entries, 0, KEYED, other); // the last one of the first chunk
        callMalformed(entries, 0, MALFORMED, right); // the first one of the second
        uint64 id = post(PUBLISHER, b.run, encode(entries));
        Challenge memory c = challengeOf(b, entries, 0, MALFORMED);
        checkEqual(c.releaseHashes.length, 2, "chunks");
        checkEqual(c.releaseChunk.length, 48, "the second one");
        commitTo(CHALLENGER, id, c);
        challenge(CHALLENGER, id, c);
        check(hints.isOpen(id), "the right one stands");
        // Another chunk or other hashes show nothing.
        c.releaseChunk = bytes.concat(other);
        bytes4 wrong = HintEvidence.WrongReleases.selector;
        bytes32 hash = c.releaseHashes[1];
        reverts(id, c, abi.encodeWithSelector(wrong, hash, keccak256(other)));
        for (uint256 i = 0; i < 8; i++) {
            c.releaseHashes[1] = keccak256(abi.encode(other, i)); // above the right hash of hashes, or below
            hash = keccak256(abi.encodePacked(c.releaseHashes));
            reverts(id, c, abi.encodeWithSelector(wrong, c.releases, hash));
        }
        c = challengeOf(b, entries, 0, KEYED);
        c.key = 0;
        commitTo(CHALLENGER, id, c);
        challenge(CHALLENGER, id, c);
        check(!hints.isOpen(id), "the other one does not");
    }

    /// @dev Members give no release of a run, and their accomplice calls all of it malformed: only they have the keys
    /// that refute it. But nobody has the releases that it would take, so whoever looks has each claim slashed, and
    /// the run gets void (S-4).
    function testUnreleasedRunClaimedMalformed() public {
        Built memory b = sample();
        RunReference memory run = b.run;
        for (uint256 i = 0; i < 3; i++) {
            BatchHints[] memory entries = i == 0 ? allMalformed(b) : rightEntries(b);
            if (i == 1) entries = withoutReleases(allMalformed(b));
            if (i == 2) callMalformed(entries, 1, KEYED, new bytes(48));
            uint64 id = post(PUBLISHER, run, encode(entries));
            Challenge memory c = challengeOf(b, entries, 1, KEYED);
            c.key = 0;
            commitTo(CHALLENGER, id, c);
            challenge(CHALLENGER, id, c);
            check(!hints.isOpen(id), "slashed without a key");
            fund(PUBLISHER, BOND);
        }
        vm.roll(block.number + HINT_DEADLINE);
        hints.voidUnreleased(run);
        (,,, bool isVoid,) = hints.runs(8);
        check(isVoid, "the chain goes on");
        bytes memory data = encode(allMalformed(b));
        vm.prank(PUBLISHER, PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.RunIsVoid.selector, 8));
        hints.postHints(run, data);
    }

    function withoutReleases(BatchHints[] memory entries) internal pure returns (BatchHints[] memory) {
        for (uint256 i = 0; i < entries.length; i++) {
            entries[i].releases = "";
        }
        return entries;
    }

    // Verdicts

    function testSlashesAnAcceptedItemSkipped() public {
        slashes(0, KEYED, 0, 0, 4);
    }

    function testSlashesAKeyOfASkippedItem() public {
        slashes(1, SKIPPED, 1, bytes16("made up"), 4);
    }

    function testSlashesASkippedItemCalledMalformed() public {
        slashes(0, SKIPPED, 2, 0, 4);
    }

    function testSlashesAKeyOfAForcedTransaction() public {
        slashes(0, FORCED, 1, bytes16("made up"), 4);
    }

    function testSlashesAnUnknownKind() public {
        slashes(0, SKIPPED, 3, 0, 2);
    }

    function testSlashesKeyBytesWhereNoKeyIs() public {
        slashes(0, SKIPPED, 0, bytes16("stray"), 3);
    }

    function testSlashesAnEntryTooMany() public {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        entries[0].entries = bytes.concat(entries[0].entries, new bytes(17));
        // Neither index nor item matter.
        Challenge memory c = challengeOf(b, entries, 0, 6);
        slashes(b, entries, c, 1);
    }

    function testSlashesAnEntryTooFew() public {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        entries[0].entries = "";
        Challenge memory c = challengeOf(b, entries, 0, 0);
        slashes(b, entries, c, 1);
    }

    function testSlashesInTheSecondChunk() public {
        slashes(1, 130, 7, 0, 2);
    }

    function fails(uint256 batch, uint32 index) internal {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        uint64 id = post(PUBLISHER, b.run, encode(entries));
        Challenge memory c = challengeOf(b, entries, batch, index);
        c.key = bytes16("whatever");
        commitTo(CHALLENGER, id, c);
        vm.expectEmit(true, true, true, true, address(hints));
        emit ChallengeFailed(id, CHALLENGER);
        challenge(CHALLENGER, id, c);
        checkBond(PUBLISHER, ALL, BOND);
        checkEqual(hints.rewards(PUBLISHER), STAKE, "the stake is the publisher's");
        checkEqual(hints.rewards(CHALLENGER), 0, "nothing");
        check(hints.isOpen(id), "open");
        checkEqual(address(hints).balance, ALL + STAKE, "held");
    }

    function testStakeIsLostAgainstTheRightKey() public {
        fails(0, KEYED);
    }

    function testStakeIsLostAgainstAMalformedOne() public {
        fails(0, MALFORMED);
    }

    function testStakeIsLostAgainstASkippedItem() public {
        fails(1, SKIPPED);
    }

    function testStakeIsLostAgainstAForcedTransaction() public {
        fails(1, FORCED);
    }

    /// @dev The item is not looked at where no ciphertext is needed.
    function testVerdictNeedsNoItem() public {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        setEntry(entries, 0, KEYED, 0, 0);
        Challenge memory c = challengeOf(b, entries, 0, KEYED);
        c.item = "";
        slashes(b, entries, c, 4);
    }

    function testFuzzAnyEntryIsJudgedByTheTruth(
        uint256 batch,
        uint256 index,
        uint8 kind,
        bytes16 key,
        bool same
    ) public {
        Built memory b = sample();
        batch = bound(batch, 0, 1);
        uint32 place = uint32(bound(index, 0, b.items[batch].length - 1));
        Item memory item = b.items[batch][place];
        BatchHints[] memory entries = rightEntries(b);
        kind %= 4;
        if (same) key = kind == item.kind ? item.key : bytes16(0);
        if (kind == 2 && !same) key &= bytes16(uint128(3));
        setEntry(entries, batch, place, kind, key);
        uint64 id = post(PUBLISHER, b.run, encode(entries));
        Challenge memory c = challengeOf(b, entries, batch, place);
        commitTo(CHALLENGER, id, c);
        challenge(CHALLENGER, id, c);
        bool right = kind == item.kind && key == item.key;
        check(hints.isOpen(id) == right, "slashed iff wrong");
        checkEqual(address(0).balance - burnt, right ? 0 : ALL - ALL / 2, "burnt iff wrong");
    }

    // Everything else reverts and slashes nothing

    /// @dev A posting with one wrong key, and the challenge of it.
    function wrongKey() internal returns (uint64 id, Challenge memory c) {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        setEntry(entries, 1, KEYED, 1, bytes16("another"));
        id = post(PUBLISHER, b.run, encode(entries));
        c = challengeOf(b, entries, 1, KEYED);
    }

    function reverts(uint64 id, Challenge memory c, bytes memory reason) internal {
        commitTo(CHALLENGER, id, c);
        uint256 held = address(hints).balance;
        uint256 before = CHALLENGER.balance;
        vm.expectRevert(reason);
        challenge(CHALLENGER, id, c);
        checkEqual(address(hints).balance, held, "held");
        checkEqual(CHALLENGER.balance, before, "the stake is back");
        checkBond(PUBLISHER, ALL, BOND);
        check(hints.isOpen(id), "open");
    }

    function testStakeMustBeExact() public {
        (uint64 id, Challenge memory c) = wrongKey();
        commitTo(CHALLENGER, id, c);
        vm.deal(CHALLENGER, 10 ether);
        for (uint256 i = 0; i < 2; i++) {
            uint256 given = STAKE - 1 + 2 * i;
            vm.expectRevert(abi.encodeWithSelector(HintRegistry.WrongStake.selector, given, STAKE));
            vm.prank(CHALLENGER);
            hints.challenge{ value: given }(id, c, SALT);
        }
    }

    function testCommitComesFirst() public {
        (uint64 id, Challenge memory c) = wrongKey();
        vm.deal(CHALLENGER, STAKE);
        bytes32 evidence = keccak256(abi.encode(id, c.header.number, c.index));
        bytes32 commitment = keccak256(abi.encode(CHALLENGER, evidence, SALT));
        vm.expectRevert(abi.encodeWithSelector(CommitReveal.NotCommitted.selector, commitment));
        challenge(CHALLENGER, id, c);
        hints.commit(commitment);
        vm.expectRevert(abi.encodeWithSelector(CommitReveal.CommittedInThisBlock.selector));
        challenge(CHALLENGER, id, c);
        // Somebody else's commitment does not help a copier.
        address copier = address(0xc0b1e4);
        vm.deal(copier, STAKE);
        vm.roll(block.number + 1);
        commitment = keccak256(abi.encode(copier, evidence, SALT));
        vm.expectRevert(abi.encodeWithSelector(CommitReveal.NotCommitted.selector, commitment));
        challenge(copier, id, c);
        challenge(CHALLENGER, id, c);
        check(!hints.isOpen(id), "slashed");
    }

    function testOnlyOpenPostings() public {
        (uint64 id, Challenge memory c) = wrongKey();
        uint64 unknown = id + 1;
        commitTo(CHALLENGER, unknown, c);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, unknown));
        challenge(CHALLENGER, unknown, c);
        // After the window too, as long as nobody has made it final.
        vm.roll(block.number + 2 * CHALLENGE_WINDOW);
        commitTo(CHALLENGER, id, c);
        challenge(CHALLENGER, id, c);
        commitTo(CHALLENGER, id, c);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, id));
        challenge(CHALLENGER, id, c);
    }

    function testFinalHintsAreNotChallenged() public {
        (uint64 id, Challenge memory c) = wrongKey();
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(id);
        commitTo(CHALLENGER, id, c);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotOpen.selector, id));
        challenge(CHALLENGER, id, c);
        checkBond(PUBLISHER, ALL, 0);
    }

    /// @dev Each time at the price of a bond.
    function testSlashedHintsMayComeAgain() public {
        (uint64 id, Challenge memory c) = wrongKey();
        commitTo(CHALLENGER, id, c);
        challenge(CHALLENGER, id, c);
        fund(PUBLISHER, BOND);
        (id, c) = wrongKey();
        checkBond(PUBLISHER, BOND, BOND);
        commitTo(CHALLENGER, id, c);
        challenge(CHALLENGER, id, c);
        checkBond(PUBLISHER, 0, 0);
    }

    function testOfAnotherRun() public {
        (uint64 id, Challenge memory c) = wrongKey();
        c.run.last++;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.WrongRun.selector, 9, 8));
        c.run.last = 7;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.WrongRun.selector, 7, 8));
    }

    function testOfAnotherChunk() public {
        (uint64 id, Challenge memory c) = wrongKey();
        c.chunk[0] ^= 0x01;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.ChunkNotInPosting.selector, id));
    }

    function testOfAnotherHeader() public {
        (uint64 id, Challenge memory c) = wrongKey();
        c.header.gas++;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.HeaderNotPosted.selector, 8));
    }

    function testOfAnIndexOutsideTheChunk() public {
        (uint64 id, Challenge memory c) = wrongKey();
        c.index = 128;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.IndexNotInChunk.selector, 128));
        c.index = 131;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.IndexNotInChunk.selector, 131));
    }

    function testOfAnotherItem() public {
        (uint64 id, Challenge memory c) = wrongKey();
        c.code = 1;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.ItemNotInBatch.selector, 8, KEYED));
        c.code = 0;
        bytes32 hash = c.itemHash;
        c.item[400] ^= 0x01;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.WrongItem.selector, hash, keccak256(c.item)));
    }

    function testVerifierThatFailsIsNoAnswer() public {
        (uint64 id, Challenge memory c) = wrongKey();
        verifier.fail(MockHintVerifier.Failure.Reverts);
        reverts(id, c, abi.encodeWithSelector(MockHintVerifier.MockRevert.selector));
        verifier.fail(MockHintVerifier.Failure.AnswersTooLittle);
        reverts(id, c, "");
        verifier.fail(MockHintVerifier.Failure.RunsOutOfGas);
        reverts(id, c, "");
        verifier.fail(MockHintVerifier.Failure.None);
        commitTo(CHALLENGER, id, c);
        challenge(CHALLENGER, id, c);
        check(!hints.isOpen(id), "slashed");
    }

    /// @dev However much gas comes along, an honest posting is not slashed.
    function testFuzzGasNeverSlashesTheHonest(uint256 gas, bool malformed) public {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        uint64 id = post(PUBLISHER, b.run, encode(entries));
        Challenge memory c = challengeOf(b, entries, 1, malformed ? MALFORMED : KEYED);
        commitTo(CHALLENGER, id, c);
        gas = bound(gas, 10_000, malformed ? 1_000_000 : 400_000);
        vm.prank(CHALLENGER);
        (bool done,) = address(hints).call{ gas: gas, value: STAKE }(
            abi.encodeCall(HintRegistry.challenge, (id, c, SALT))
        );
        check(hints.isOpen(id), "open");
        checkEqual(hints.rewards(PUBLISHER), done ? STAKE : 0, "failed or reverted");
        checkBond(PUBLISHER, ALL, BOND);
    }

    /// @dev Nor does an accepted item that is no envelope, which a committee would have to certify.
    function testItemThatDoesNotDecodeIsNoFraud() public {
        Built memory b = sample();
        Item memory item = b.items[0][KEYED];
        item.data = "no envelope";
        b.headers[0].envelopeRoot = rootOfItems(b.items[0]);
        tell(b);
        BatchHints[] memory entries = rightEntries(b);
        uint64 id = post(PUBLISHER, b.run, encode(entries));
        Challenge memory c = challengeOf(b, entries, 0, KEYED);
        reverts(id, c, abi.encodeWithSelector(Envelopes.BadEnvelopeLength.selector, 11));
    }

    // Tampering

    /// @dev Changes one field so that the challenge no longer says what is true.
    function tamper(Challenge memory c, uint256 field, uint256 by) internal pure {
        uint32 small = uint32(bound(by, 1, 1_000));
        if (field == 0) c.run.first -= uint64(small % 7) + 1;
        else if (field == 1) c.run.last += small;
        else if (field == 2) c.run.postedAt += small;
        else if (field == 3) c.run.headerRoot ^= bytes32(uint256(small));
        else if (field == 4) c.header.number += small;
        else if (field == 5) c.header.envelopeCount += small;
        else if (field == 6) c.header.envelopeRoot ^= bytes32(uint256(small));
        else if (field == 7) c.header.epoch += small;
        else if (field == 8) c.headerProof[0] ^= bytes32(uint256(small));
        else if (field == 9) c.chunk[by % c.chunk.length] ^= bytes1(uint8(1 + by % 255));
        else if (field == 10) c.chunk = bytes.concat(c.chunk, c.chunk);
        else if (field == 11) c.chunkIndex += small;
        else if (field == 12) c.leafIndex += small;
        else if (field == 13) c.leafCount += small;
        else if (field == 14) c.chunkProof[by % c.chunkProof.length] ^= bytes32(uint256(small));
        else if (field == 15) c.count += small;
        else if (field == 16) c.index += small;
        else if (field == 17) c.itemHash ^= bytes32(uint256(small));
        else if (field == 18) c.id ^= bytes32(uint256(small));
        else if (field == 19) c.code ^= uint8(1 + by % 255);
        else if (field == 20) c.itemProof[by % c.itemProof.length] ^= bytes32(uint256(small));
        else if (field == 21) c.item[by % c.item.length] ^= bytes1(uint8(1 + by % 255));
        else if (field == 22) c.item = bytes.concat(c.item, hex"00");
        else if (field == 23) c.itemProof = new bytes32[](c.itemProof.length + 1);
        else if (field == 24) c.releases ^= bytes32(uint256(small));
        else if (field == 25) c.chunkProof = new bytes32[](c.chunkProof.length + 1);
        else if (field == 26) c.releaseChunk[by % c.releaseChunk.length] ^= bytes1(uint8(1 + by % 255));
        else if (field == 27) c.releaseChunk = "";
        else if (field == 28) c.releaseHashes[0] ^= bytes32(uint256(small));
        else if (field == 29) c.releaseHashes = new bytes32[](0);
        else c.headerProof = new bytes32[](0);
    }

    function testFuzzTamperedChallengeReverts(uint256 field, uint256 by, bool malformed, bool honest) public {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        // The first two need the item, so that every field counts.
        uint32 index = malformed ? MALFORMED : KEYED;
        if (!honest) setEntry(entries, 1, index, 1, bytes16("another"));
        uint64 id = post(PUBLISHER, b.run, encode(entries));
        Challenge memory c = challengeOf(b, entries, 1, index);
        // Nobody looks at releases where a key is claimed.
        tamper(c, field % (malformed && honest ? 31 : 26), by);
        commitTo(CHALLENGER, id, c);
        vm.prank(CHALLENGER);
        (bool done,) =
            address(hints).call{ value: STAKE }(abi.encodeCall(HintRegistry.challenge, (id, c, SALT)));
        check(!done, "settled");
        check(hints.isOpen(id), "slashed");
        checkBond(PUBLISHER, ALL, BOND);
        checkEqual(CHALLENGER.balance, STAKE, "the stake is back");
    }

    /// @dev Bytes that are no call at all slash nothing either.
    function testFuzzMangledCalldataNeverSlashesTheHonest(uint256 position, bytes32 word) public {
        Built memory b = sample();
        BatchHints[] memory entries = rightEntries(b);
        uint64 id = post(PUBLISHER, b.run, encode(entries));
        Challenge memory c = challengeOf(b, entries, 1, KEYED);
        commitTo(CHALLENGER, id, c);
        bytes memory data = abi.encodeCall(HintRegistry.challenge, (id, c, SALT));
        position = 4 + 32 * bound(position, 1, (data.length - 36) / 32 - 1);
        assembly ("memory-safe") {
            mstore(add(add(data, 32), position), word)
        }
        vm.prank(CHALLENGER);
        (bool done,) = address(hints).call{ value: STAKE }(data);
        done;
        check(hints.isOpen(id), "slashed");
        checkBond(PUBLISHER, ALL, BOND);
    }
}
