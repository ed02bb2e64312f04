// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Challenge, HintEvidence, PlaintextProof } from "../src/HintEvidence.sol";
import { HintRegistry } from "../src/HintRegistry.sol";
import { HintBlobs } from "../src/libraries/HintBlobs.sol";
import { HintFixture } from "./helpers/HintFixture.sol";

/// @dev Hints in blobs, with the real precompile on `testing/vectors/hints/blobs.json`: the last batch of each posting
/// there has 12 items, of which 1, 5 and 9 are malformed and 2, 6 and 10 skipped. In `twoBlobs` a batch of 7,460 is in
/// front, so that its item 8 lies in two blobs; in `damaged` items 1, 2 and 3 cannot be read, in `damagedReleases` the
/// first two singleton releases, and in `swappedReleases` these stand in the other order.
contract HintBlobsTest is HintFixture {
    uint64 internal constant FIRST = 7;
    uint32 internal constant EARLIER = 7_460;
    uint32 internal constant ITEMS = 12;
    uint256 internal constant ALL = 3 * BOND;

    event ChallengeFailed(uint64 indexed id, address indexed challenger);

    string internal json;

    function setUp() public {
        vm.roll(1_000_000);
        deployHints();
        fund(PUBLISHER, ALL);
        json = vm.readFile("../testing/vectors/hints/blobs.json");
    }

    function sortOf(uint256, uint256 index) internal pure override returns (uint256) {
        return index % 4 == 1 ? 4 : index % 4 == 2 ? 6 : 0;
    }

    // What the file has

    function pathOf(string memory name, string memory field) internal pure returns (string memory) {
        return string.concat(".", name, field);
    }

    function hashesOf(string memory name) internal view returns (bytes32[] memory hashes) {
        hashes = new bytes32[](vm.parseJsonUint(json, pathOf(name, ".blobs")));
        for (uint256 i = 0; i < hashes.length; i++) {
            string memory place = string.concat(".versionedHashes[", vm.toString(i), "]");
            hashes[i] = vm.parseJsonBytes32(json, pathOf(name, place));
        }
    }

    function indexOf(string memory name) internal view returns (bytes memory) {
        return vm.parseJsonBytes(json, pathOf(name, ".index"));
    }

    function shown(string memory name, uint32 item) internal view returns (HintBlobs.Evidence memory given) {
        given.index = indexOf(name);
        given.versionedHashes = hashesOf(name);
        string memory path = pathOf(name, string.concat(".shown[", vm.toString(item), "]"));
        given.openings = openingsOf(path, ".elements", ".openings[");
        given.releaseOpenings = openingsOf(path, ".releaseElements", ".releaseOpenings[");
    }

    function openingsOf(string memory path, string memory count, string memory list)
        internal
        view
        returns (HintBlobs.Opening[] memory openings)
    {
        openings = new HintBlobs.Opening[](vm.parseJsonUint(json, string.concat(path, count)));
        for (uint256 i = 0; i < openings.length; i++) {
            string memory one = string.concat(path, list, vm.toString(i), "]");
            openings[i] = HintBlobs.Opening({
                value: uint256(vm.parseJsonBytes32(json, string.concat(one, ".value"))),
                commitment: vm.parseJsonBytes(json, string.concat(one, ".commitment")),
                proof: vm.parseJsonBytes(json, string.concat(one, ".proof"))
            });
        }
    }

    // Runs and postings

    /// @dev A run whose right hints are those of the small posting.
    function small() internal returns (Built memory b) {
        uint256[] memory counts = new uint256[](1);
        counts[0] = ITEMS;
        b = buildRun(FIRST, counts, 0);
        setItems(b, 0);
        tell(b);
    }

    /// @dev A run whose right hints are those of the posting in two blobs. Nobody looks at the first batch's items.
    function large() internal returns (Built memory) {
        return large(FIRST);
    }

    function large(uint64 first) internal returns (Built memory b) {
        uint256[] memory counts = new uint256[](2);
        counts[1] = ITEMS;
        b = buildRun(first, counts, 0);
        setItems(b, 1);
        b.headers[0].envelopeCount = EARLIER;
        tell(b);
    }

    /// @dev Gives the items the keys, and the ciphertexts the releases, that the file has.
    function setItems(Built memory b, uint256 batch) internal {
        Item[] memory items = b.items[batch];
        for (uint256 i = 0; i < items.length; i++) {
            if (items[i].kind == 2) setCiphertext(items[i], i + 1);
            if (items[i].kind != 1) continue;
            items[i].key = bytes16(uint128((i + 1) * 0x01010101010101010101010101010101));
            tellKey(items[i]);
        }
        b.headers[batch].envelopeRoot = rootOfItems(items);
    }

    function setCiphertext(Item memory item, uint256 k) internal {
        item.data = envelope(k, 256);
        item.id = caller.id(item.data);
        item.release = releaseOf(k);
    }

    /// @dev C = [k]₁ for the seed k.
    function exponentOf(uint256 seed) internal pure override returns (uint256) {
        return seed <= ITEMS ? seed : super.exponentOf(seed);
    }

    function postBlobs(Built memory b, bytes memory index, bytes32[] memory hashes)
        internal
        returns (uint64 id)
    {
        vm.blobhashes(hashes);
        vm.prank(PUBLISHER, PUBLISHER);
        id = hints.postHintsInBlobs(b.run, index);
        vm.blobhashes(new bytes32[](0));
    }

    function postBlobs(Built memory b, string memory name) internal returns (uint64) {
        return postBlobs(b, indexOf(name), hashesOf(name));
    }

    function evidenceOf(Built memory b, string memory name, uint256 batch, uint32 item)
        internal
        view
        returns (Challenge memory c)
    {
        c = challengeOf(b, rightEntries(b), batch, item);
        (c.chunk, c.chunkProof) = ("", new bytes32[](0));
        (c.chunkIndex, c.leafIndex, c.leafCount, c.releases, c.count) = (0, 0, 0, 0, 0);
        (c.releaseChunk, c.releaseHashes) = ("", new bytes32[](0));
        c.blobs = shown(name, item);
    }

    /// @dev The challenge slashes for this reason; 0 for none.
    function settles(uint64 id, Challenge memory c, uint8 reason) internal {
        commitTo(CHALLENGER, id, c);
        uint256 before = hints.rewards(PUBLISHER);
        vm.prank(CHALLENGER);
        hints.challenge{ value: STAKE, gas: 5_000_000 }(id, c, SALT);
        check(hints.isOpen(id) == (reason == 0), "slashed iff there is a reason");
        checkEqual(hints.rewards(PUBLISHER) - before, reason == 0 ? STAKE : 0, "stake");
        checkBond(PUBLISHER, reason == 0 ? ALL : 0, reason == 0 ? BOND : 0);
        checkEqual(hints.rewards(CHALLENGER), reason == 0 ? 0 : ALL / 2 + STAKE, "reward");
    }

    function reverts(uint64 id, Challenge memory c, bytes memory reason) internal {
        commitTo(CHALLENGER, id, c);
        vm.expectRevert(reason);
        challenge(CHALLENGER, id, c);
        checkBond(PUBLISHER, ALL, BOND);
        check(hints.isOpen(id), "open");
    }

    // Every outcome

    function testRootsAreThoseOfTheVectors() public {
        uint64 id = postBlobs(small(), "small");
        (,,, bytes32 root) = hints.postings(id);
        checkEqual(root, vm.parseJsonBytes32(json, ".small.root"), "root");
        id = postBlobs(large(), "twoBlobs");
        (,,, root) = hints.postings(id);
        checkEqual(root, vm.parseJsonBytes32(json, ".twoBlobs.root"), "root");
    }

    function testRightEntriesStand() public {
        rightEntriesStand(large());
    }

    /// @dev What a batch has is looked for by its place in the run, not by its number.
    function testRightEntriesOfTheFirstRunStand() public {
        rightEntriesStand(large(1));
    }

    function rightEntriesStand(Built memory b) internal {
        uint64 id = postBlobs(b, "twoBlobs");
        for (uint32 i = 0; i < ITEMS; i++) {
            Challenge memory c = evidenceOf(b, "twoBlobs", 1, i);
            c.key = bytes16("whatever");
            settles(id, c, 0);
        }
    }

    function testSlashesAWrongKeyInTwoBlobs() public {
        Built memory b = large();
        b.items[1][8].key = bytes16("another");
        tellKey(b.items[1][8]);
        uint64 id = postBlobs(b, "twoBlobs");
        settles(id, evidenceOf(b, "twoBlobs", 1, 8), 5);
    }

    function testSlashesAFalseMalformedClaim() public {
        Built memory b = small();
        b.items[0][5].key = bytes16("opens it");
        tellKey(b.items[0][5]);
        uint64 id = postBlobs(b, "small");
        settles(id, evidenceOf(b, "small", 0, 5), 6);
    }

    function testSlashesAWrongRelease() public {
        Built memory b = small();
        for (uint32 i = 1; i <= 5; i += 4) {
            uint64 id = postBlobs(b, "swappedReleases");
            Challenge memory c = evidenceOf(b, "swappedReleases", 0, i);
            c.key = 0;
            settles(id, c, 9);
            again();
        }
        settles(postBlobs(b, "swappedReleases"), evidenceOf(b, "swappedReleases", 0, 9), 0);
    }

    function testSlashesAReleaseThatCannotBeRead() public {
        Built memory b = small();
        for (uint32 i = 1; i <= 5; i += 4) {
            settles(postBlobs(b, "damagedReleases"), evidenceOf(b, "damagedReleases", 0, i), 8);
            again();
        }
        settles(postBlobs(b, "damagedReleases"), evidenceOf(b, "damagedReleases", 0, 9), 0);
    }

    function testSlashesAReleaseBehindTheBlobs() public {
        uint256[] memory counts = new uint256[](2);
        counts[0] = ITEMS;
        Built memory b = buildRun(FIRST, counts, 0);
        setItems(b, 0);
        b.headers[1].envelopeCount = EARLIER;
        tell(b);
        bytes memory index = bytes.concat(indexOf("small"), abi.encodePacked(EARLIER, uint32(0)));
        uint64 id = postBlobs(b, index, hashesOf("small"));
        Challenge memory c = evidenceOf(b, "small", 0, 5);
        c.blobs.index = index;
        c.blobs.releaseOpenings = new HintBlobs.Opening[](0);
        settles(id, c, 8);
    }

    /// @dev Takes the reward and deposits again.
    function again() internal {
        vm.prank(CHALLENGER);
        hints.claimReward();
        fund(PUBLISHER, ALL);
    }

    function testSlashesAWrongVerdict() public {
        Built memory b = small();
        (b.items[0][2].code, b.items[0][4].code) = (0, 3);
        b.headers[0].envelopeRoot = rootOfItems(b.items[0]);
        tell(b);
        uint64 id = postBlobs(b, "small");
        settles(id, evidenceOf(b, "small", 0, 2), 4);
    }

    function testSlashesAWrongCount() public {
        Built memory b = small();
        b.headers[0].envelopeCount = ITEMS + 1;
        tell(b);
        uint64 id = postBlobs(b, "small");
        Challenge memory c = evidenceOf(b, "small", 0, 3);
        c.blobs.openings = new HintBlobs.Opening[](0);
        settles(id, c, 1);
        again();
        b.headers[0].envelopeCount = ITEMS - 1;
        tell(b);
        id = postBlobs(b, "small");
        c = evidenceOf(b, "small", 0, 3);
        c.blobs.openings = new HintBlobs.Opening[](0);
        settles(id, c, 1);
    }

    function testSlashesEntriesThatCannotBeRead() public {
        for (uint32 i = 1; i <= 3; i++) {
            Built memory b = small();
            uint64 id = postBlobs(b, "damaged");
            settles(id, evidenceOf(b, "damaged", 0, i), 2);
            again();
        }
        // What else is in the same blob is judged as ever.
        Built memory other = small();
        settles(postBlobs(other, "damaged"), evidenceOf(other, "damaged", 0, 0), 0);
    }

    function testSlashesEntriesBehindTheBlobs() public {
        Built memory b = small();
        b.headers[0].envelopeCount = EARLIER + 9;
        tell(b);
        bytes memory index = abi.encodePacked(uint32(EARLIER + 9), uint32(0));
        uint64 id = postBlobs(b, index, hashesOf("small"));
        Challenge memory c = evidenceOf(b, "small", 0, 0);
        c.index = EARLIER + 8;
        c.blobs.index = index;
        c.blobs.openings = new HintBlobs.Opening[](0);
        settles(id, c, 2);
    }

    function testSlashesAnIndexThatLeavesOutAMalformedItem() public {
        Built memory b = small();
        bytes memory index = abi.encodePacked(uint32(ITEMS), uint32(2), uint32(1), uint32(9));
        uint64 id = postBlobs(b, index, hashesOf("small"));
        Challenge memory c = evidenceOf(b, "small", 0, 5);
        c.blobs.index = index;
        settles(id, c, 7);
    }

    function testSlashesAnIndexThatCallsAnotherItemMalformed() public {
        Built memory b = small();
        bytes memory index =
            abi.encodePacked(uint32(ITEMS), uint32(4), uint32(1), uint32(5), uint32(8), uint32(9));
        uint64 id = postBlobs(b, index, hashesOf("small"));
        Challenge memory c = evidenceOf(b, "small", 0, 8);
        c.blobs.index = index;
        settles(id, c, 7);
    }

    // Everything else reverts and slashes nothing

    function testOpeningsThatShowNothing() public {
        Built memory b = large();
        uint64 id = postBlobs(b, "twoBlobs");
        Challenge memory c = evidenceOf(b, "twoBlobs", 1, 8);
        // The entry's first byte is the last element's of the first blob.
        bytes memory reason = abi.encodeWithSelector(HintBlobs.BadOpening.selector, 4_095);
        c.blobs.openings[0].value ^= 1;
        reverts(id, c, reason);
        c = evidenceOf(b, "twoBlobs", 1, 8);
        c.blobs.openings[0].proof = c.blobs.openings[1].proof;
        reverts(id, c, reason);
        c = evidenceOf(b, "twoBlobs", 1, 8);
        c.blobs.openings[0].commitment = c.blobs.openings[1].commitment;
        reverts(id, c, reason);
        c = evidenceOf(b, "twoBlobs", 1, 8);
        c.blobs.openings[0].proof = bytes.concat(c.blobs.openings[0].proof, hex"00");
        reverts(id, c, reason);
        c = evidenceOf(b, "twoBlobs", 1, 8);
        (c.blobs.openings[0], c.blobs.openings[1]) = (c.blobs.openings[1], c.blobs.openings[0]);
        reverts(id, c, reason);
        c = evidenceOf(b, "twoBlobs", 1, 8);
        HintBlobs.Opening[] memory one = new HintBlobs.Opening[](1);
        one[0] = c.blobs.openings[0];
        c.blobs.openings = one;
        reverts(id, c, abi.encodeWithSelector(HintBlobs.WrongOpenings.selector, 4_095, 2));
        c = evidenceOf(b, "twoBlobs", 1, 8);
        c.blobs.openings = withAnother(c.blobs.openings);
        reverts(id, c, abi.encodeWithSelector(HintBlobs.WrongOpenings.selector, 4_095, 2));
        // The same bytes in a row, the parts of other lengths.
        c = evidenceOf(b, "twoBlobs", 1, 8);
        bytes memory proof = c.blobs.openings[0].proof;
        c.blobs.openings[0].commitment = bytes.concat(c.blobs.openings[0].commitment, proof[0]);
        bytes memory rest = new bytes(47);
        for (uint256 i = 0; i < 47; i++) {
            rest[i] = proof[i + 1];
        }
        c.blobs.openings[0].proof = rest;
        reverts(id, c, reason);
    }

    function withAnother(HintBlobs.Opening[] memory openings)
        private
        pure
        returns (HintBlobs.Opening[] memory more)
    {
        more = new HintBlobs.Opening[](openings.length + 1);
        for (uint256 i = 0; i < more.length; i++) {
            more[i] = openings[i == openings.length ? 0 : i];
        }
    }

    function testReleaseOpeningsThatShowNothing() public {
        Built memory b = small();
        uint64 id = postBlobs(b, "small");
        // The first release begins at byte 208, of 31 to an element.
        Challenge memory c = evidenceOf(b, "small", 0, 1);
        c.blobs.releaseOpenings[1].value ^= 1;
        reverts(id, c, abi.encodeWithSelector(HintBlobs.BadOpening.selector, 7));
        c = evidenceOf(b, "small", 0, 1);
        c.blobs.releaseOpenings = new HintBlobs.Opening[](0);
        reverts(id, c, abi.encodeWithSelector(HintBlobs.WrongOpenings.selector, 6, 3));
        c.blobs.releaseOpenings = withAnother(evidenceOf(b, "small", 0, 1).blobs.releaseOpenings);
        reverts(id, c, abi.encodeWithSelector(HintBlobs.WrongOpenings.selector, 6, 3));
        c.blobs.releaseOpenings = evidenceOf(b, "small", 0, 5).blobs.releaseOpenings;
        reverts(id, c, abi.encodeWithSelector(HintBlobs.WrongOpenings.selector, 6, 3));
        c.blobs.releaseOpenings = evidenceOf(b, "small", 0, 9).blobs.releaseOpenings;
        reverts(id, c, abi.encodeWithSelector(HintBlobs.BadOpening.selector, 6));
    }

    /// @dev The opening of another element of the same blob is none of this one.
    function testAnotherElementIsNotTheOne() public {
        Built memory b = small();
        uint64 id = postBlobs(b, "small");
        Challenge memory c = evidenceOf(b, "small", 0, 0);
        c.blobs.openings = shown("small", 4).openings;
        reverts(id, c, abi.encodeWithSelector(HintBlobs.BadOpening.selector, 0));
    }

    function testEvidenceOfAnotherPosting() public {
        Built memory b = small();
        uint64 id = postBlobs(b, "small");
        bytes memory reason = abi.encodeWithSelector(HintEvidence.ChunkNotInPosting.selector, id);
        Challenge memory c = evidenceOf(b, "damaged", 0, 1);
        reverts(id, c, reason);
        c = evidenceOf(b, "small", 0, 1);
        c.blobs.index[3] = bytes1(uint8(ITEMS + 1));
        reverts(id, c, reason);
        // Nor does a chunk lead to the root of hints in blobs, nor an index to that of hints in calldata.
        c = challengeOf(b, rightEntries(b), 0, 1);
        reverts(id, c, reason);
        id = post(PUBLISHER, b.run, encode(rightEntries(b)));
        reason = abi.encodeWithSelector(HintEvidence.ChunkNotInPosting.selector, id);
        reverts(id, evidenceOf(b, "small", 0, 1), reason);
    }

    function testAnIndexThatOnlyThePostingHas() public {
        Built memory b = small();
        uint64 id = postBlobs(b, "small");
        Challenge memory c = evidenceOf(b, "small", 0, 0);
        c.index = ITEMS;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.IndexNotInChunk.selector, ITEMS));
        c.index = ITEMS + 1;
        reverts(id, c, abi.encodeWithSelector(HintEvidence.IndexNotInChunk.selector, ITEMS + 1));
    }

    // Posting

    function refuses(bytes memory index, bytes memory reason) internal {
        Built memory b = small();
        vm.blobhashes(hashesOf("small"));
        vm.prank(PUBLISHER, PUBLISHER);
        vm.expectRevert(reason);
        hints.postHintsInBlobs(b.run, index);
    }

    function testPostingNeedsABlob() public {
        Built memory b = small();
        vm.prank(PUBLISHER, PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(HintBlobs.NoBlobs.selector));
        hints.postHintsInBlobs(b.run, indexOf("small"));
    }

    function testIndexesOfAnotherForm() public {
        bytes4 bad = HintBlobs.BadHintIndex.selector;
        refuses("", abi.encodeWithSelector(bad, 0));
        refuses(abi.encodePacked(uint32(ITEMS)), abi.encodeWithSelector(bad, 4));
        refuses(abi.encodePacked(uint32(ITEMS), uint32(0), uint32(0)), abi.encodeWithSelector(bad, 8));
        refuses(abi.encodePacked(uint32(ITEMS), uint32(1)), abi.encodeWithSelector(bad, 8));
        refuses(abi.encodePacked(uint32(3), uint32(1), uint32(3)), abi.encodeWithSelector(bad, 8));
        refuses(abi.encodePacked(uint32(3), uint32(2), uint32(1), uint32(1)), abi.encodeWithSelector(bad, 12));
        refuses(abi.encodePacked(uint32(3), uint32(2), uint32(2), uint32(1)), abi.encodeWithSelector(bad, 12));
        refuses(new bytes(32_772), abi.encodeWithSelector(bad, 32_768));
    }

    function testTheRulesOfPostingsHold() public {
        Built memory b = small();
        uint64 id = postBlobs(b, "small");
        (,,, bytes32 root) = hints.postings(id);
        refuses(indexOf("small"), abi.encodeWithSelector(HintRegistry.SameHintsOpen.selector, FIRST, root));
        // The same hints in calldata are another posting.
        post(PUBLISHER, b.run, encode(rightEntries(b)));
        (,, uint32 open,,) = hints.runs(FIRST);
        checkEqual(open, 2, "open");
        vm.blobhashes(hashesOf("small"));
        vm.prank(PUBLISHER, CHALLENGER);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.NotTopLevel.selector));
        hints.postHintsInBlobs(b.run, indexOf("small"));
        vm.blobhashes(hashesOf("damaged"));
        vm.prank(CHALLENGER, CHALLENGER);
        vm.expectRevert(abi.encodeWithSelector(HintRegistry.BondTooLow.selector, 0, BOND));
        hints.postHintsInBlobs(b.run, indexOf("small"));
    }

    // Reading

    function testReadPlaintext() public {
        Built memory b = large();
        uint64 id = postBlobs(b, "twoBlobs");
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(id);
        Challenge memory c = evidenceOf(b, "twoBlobs", 1, 8);
        PlaintextProof memory p = plaintextOf(c);
        (bytes32 envelope, bytes memory message) = hints.readPlaintext(p, finalHintOf(c));
        checkEqual(envelope, b.items[1][8].id, "id");
        bytes32 ad = caller.decode(p.item).ad;
        checkEqual(message, caller.decrypt(p.key, ad, caller.decode(p.item).e), "message");
        p.key = bytes16("another");
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.WrongKey.selector));
        hints.readPlaintext(p, finalHintOf(c));
        // The hint of another item, of another posting, or none.
        p = plaintextOf(c);
        c.blobs = shown("twoBlobs", 0);
        vm.expectRevert(abi.encodeWithSelector(HintBlobs.WrongOpenings.selector, 4_095, 2));
        hints.readPlaintext(p, finalHintOf(c));
        c.blobs = shown("small", 8);
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.ChunkNotFinal.selector, FIRST + 1));
        hints.readPlaintext(p, finalHintOf(c));
        c = challengeOf(b, rightEntries(b), 1, 8);
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.ChunkNotFinal.selector, FIRST + 1));
        hints.readPlaintext(p, finalHintOf(c));
    }

    // Places

    function placeOf(bytes calldata index, uint256 batch, uint256 item)
        external
        pure
        returns (HintBlobs.Place memory)
    {
        return HintBlobs.placeOf(index, batch, item);
    }

    /// @dev Against counting: entries stand behind those of all earlier batches, releases behind all entries, in the order of
    /// the items that are called malformed, which are the ones in each batch's mask.
    function testFuzzPlaces(uint8[5] calldata counts, uint256[5] calldata masks, uint8 batches) public view {
        uint256 count = 1 + batches % 5;
        bytes memory index = "";
        uint256 entries = 0;
        for (uint256 i = 0; i < count; i++) {
            bytes memory malformed = "";
            for (uint256 item = 0; item < counts[i] % 20; item++) {
                if ((masks[i] >> item) & 1 == 1) malformed = abi.encodePacked(malformed, uint32(item));
            }
            entries += counts[i] % 20;
            index = bytes.concat(
                index, abi.encodePacked(uint32(counts[i] % 20), uint32(malformed.length / 4)), malformed
            );
        }
        uint256 seen = 0;
        uint256 releases = 0;
        for (uint256 i = 0; i < count; i++) {
            for (uint256 item = 0; item < counts[i] % 20; item++) {
                HintBlobs.Place memory place = this.placeOf(index, i, item);
                checkEqual(place.entry, seen++, "entry");
                checkEqual(place.count, counts[i] % 20, "count");
                check(place.isMalformed == ((masks[i] >> item) & 1 == 1), "malformed");
                if (!place.isMalformed) continue;
                checkEqual(this.releaseOf(index, i, item), 17 * entries + 48 * releases++, "release");
            }
        }
    }

    function entry(HintBlobs.Evidence calldata given, uint256 place) external view returns (uint8, bytes16) {
        return HintBlobs.entry(given, place);
    }

    function release(HintBlobs.Evidence calldata given, uint256 start) external view returns (bytes memory) {
        return HintBlobs.release(given, start);
    }

    /// @dev What ends with an element's last byte needs none of the next.
    function testWhatEndsWithItsElement() public {
        HintBlobs.Evidence memory given = shown("small", 0);
        given.openings = new HintBlobs.Opening[](1);
        // 4 + 17 · 17 + 17 = 10 · 31.
        vm.expectRevert(abi.encodeWithSelector(HintBlobs.BadOpening.selector, 9));
        this.entry(given, 17);
        given.releaseOpenings = new HintBlobs.Opening[](2);
        // 4 + 10 + 48 = 2 · 31.
        vm.expectRevert(abi.encodeWithSelector(HintBlobs.BadOpening.selector, 0));
        this.release(given, 10);
    }

    // Cost

    function releaseOf(bytes calldata index, uint256 batch, uint256 item) external pure returns (uint256) {
        return HintBlobs.releaseOf(index, batch, item);
    }

    /// @dev However long an index was posted, finding a release in it leaves most of a transaction's gas.
    function testGasOfTheLongestIndex() public {
        bytes memory index = abi.encodePacked(uint32(8_190), uint32(8_190), new bytes(32_760));
        for (uint256 i = 0; i < 8_190; i++) {
            (index[8 + 4 * i + 2], index[8 + 4 * i + 3]) = (bytes1(uint8(i >> 8)), bytes1(uint8(i)));
        }
        uint256 before = gasleft();
        checkEqual(this.releaseOf(index, 0, 8_189), 17 * 8_190 + 48 * 8_189, "the last one");
        check(before - gasleft() < 1_500_000, "a long index stands in the way of a challenge");
        postBlobs(buildRun(FIRST, 1, 0), index, hashesOf("small"));
    }

    /// @dev A wrong key is shown, with nothing warm.
    function challengeCold(uint32 item, string memory name) internal {
        Built memory b = small();
        b.items[0][item].key = bytes16("another");
        tellKey(b.items[0][item]);
        uint64 id = postBlobs(b, "small");
        Challenge memory c = evidenceOf(b, "small", 0, item);
        commitTo(CHALLENGER, id, c);
        vm.cool(address(hints));
        vm.cool(address(inbox));
        vm.cool(address(committees));
        vm.cool(address(verifier));
        challenge(CHALLENGER, id, c);
        vm.snapshotGasLastCall(name);
        check(!hints.isOpen(id), "slashed");
    }

    function testGasOfAnEntryInOneElement() public {
        challengeCold(0, "HintRegistry.challenge, in blobs, one element, without the check of the key");
    }

    /// @dev With the key that refutes the claim, whose check is not counted.
    function testGasOfARelease() public {
        challengeCold(
            1, "HintRegistry.challenge, in blobs, of a singleton release, without the check of the key"
        );
    }

    function testGasOfAnEntryInTwoElements() public {
        challengeCold(3, "HintRegistry.challenge, in blobs, two elements, without the check of the key");
    }
}
