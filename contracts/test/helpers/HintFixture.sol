// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Challenge, FinalHint, PlaintextProof } from "../../src/HintEvidence.sol";
import { HintRegistry } from "../../src/HintRegistry.sol";
import { RunReference, Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { BatchHeader, BatchHeaders } from "../../src/libraries/BatchHeaders.sol";
import { EnvelopeParts, Envelopes } from "../../src/libraries/Envelopes.sol";
import { BlsSigner } from "./BlsSigner.sol";
import { HintLibraries } from "./HintLibraries.sol";
import { MockCommitteeRegistry, MockHintVerifier, MockRunInbox } from "./HintMocks.sol";
import { MerkleProofs } from "./MerkleProofs.sol";
import { Test } from "./Test.sol";

/// @notice A hint registry with mocks around it, runs of made-up batches, their right hints, and challenges.
abstract contract HintFixture is Test {
    uint128 internal constant BOND = 1 ether + 1;
    uint128 internal constant STAKE = 0.1 ether;
    uint32 internal constant CHALLENGE_WINDOW = 7_200;
    uint32 internal constant HINT_DEADLINE = 3_600;
    address internal constant PUBLISHER = address(0x9b15);
    address internal constant CHALLENGER = address(0xc4a1);
    bytes32 internal constant SALT = keccak256("salt");

    /// @dev One item of a batch with its verdict and its right entry.
    struct Item {
        bytes data;
        bytes32 id;
        uint8 code;
        uint8 kind;
        bytes16 key;
        /// Its right singleton release, where one can be asked for.
        bytes release;
    }

    /// @dev The hints of a batch as somebody posts them.
    struct BatchHints {
        bytes entries;
        bytes releases;
    }

    /// @dev A posted run.
    struct Built {
        RunReference run;
        BatchHeader[] headers;
        Item[][] items;
    }

    MockRunInbox internal inbox;
    MockCommitteeRegistry internal committees;
    MockHintVerifier internal verifier;
    HintRegistry internal hints;
    HintLibraries internal caller;
    /// @dev Compressed multiples of g1.
    mapping(uint256 k => bytes point) private points;

    function deployHints() internal {
        inbox = new MockRunInbox(
            Timing({
                postingDeadline: 14_400,
                forcedDelay: 300,
                answerWindow: 7_200,
                hintDeadline: HINT_DEADLINE,
                challengeWindow: CHALLENGE_WINDOW,
                withdrawalDelay: 36_000,
                maxOriginAgeSeconds: 14_400
            })
        );
        committees = new MockCommitteeRegistry(address(inbox));
        verifier = new MockHintVerifier();
        hints = new HintRegistry(inbox, committees, verifier, BOND, STAKE);
        caller = new HintLibraries();
    }

    // Runs

    /// @dev Posts a run of batches with `counts` items each, from number `first` on, to the mock inbox.
    function buildRun(uint64 first, uint256[] memory counts, uint256 seed) internal returns (Built memory b) {
        b.headers = new BatchHeader[](counts.length);
        b.items = new Item[][](counts.length);
        for (uint256 i = 0; i < counts.length; i++) {
            b.items[i] = new Item[](counts[i]);
            uint128 malformed = 0;
            for (uint256 j = 0; j < counts[i]; j++) {
                b.items[i][j] = makeItem(uint256(keccak256(abi.encode(seed, first + i, j))), j);
                // What stands in place of a key says where the release is.
                if (b.items[i][j].kind == 2) b.items[i][j].key = bytes16(malformed++);
            }
            b.headers[i].version = 2;
            b.headers[i].number = first + uint64(i);
            b.headers[i].envelopeCount = uint32(counts[i]);
            b.headers[i].epoch = 1;
            b.headers[i].envelopeRoot = rootOfItems(b.items[i]);
        }
        b.run.first = first;
        b.run.last = first + uint64(counts.length) - 1;
        b.run.postedAt = uint64(block.number);
        tell(b);
    }

    /// @dev Posts the headers as they are to the mock inbox.
    function tell(Built memory b) internal {
        (b.run.headerRoot,) = MerkleProofs.prove(headerLeaves(b), 0);
        inbox.tell(b.run);
    }

    function buildRun(uint64 first, uint256 batches, uint256 count) internal returns (Built memory) {
        uint256[] memory counts = new uint256[](batches);
        for (uint256 i = 0; i < batches; i++) {
            counts[i] = count;
        }
        return buildRun(first, counts, 0);
    }

    /// @dev Of eight items about four are well-formed, two malformed, one skipped, one a forced transaction.
    function makeItem(uint256 seed, uint256 index) internal returns (Item memory item) {
        uint256 sort = sortOf(seed, index);
        if (sort == 7) {
            item.data = abi.encodePacked(uint8(0xff), uint64(21_000), seed);
            item.code = 0xff;
            return item;
        }
        item.data = envelope(seed, 256);
        item.id = Envelopes.id(caller.decode(item.data));
        item.release = releaseOf(seed);
        if (sort == 6) {
            item.code = uint8(1 + (seed >> 8) % 17);
            return item;
        }
        if (sort >= 4) {
            item.kind = 2;
            return item;
        }
        item.kind = 1;
        item.key = bytes16(keccak256(abi.encode("key", seed)));
        tellKey(item);
    }

    /// @dev The sort of the item at `index`: 0 … 3 well-formed, 4 and 5 malformed, 6 skipped, 7 a forced transaction.
    function sortOf(uint256 seed, uint256) internal pure virtual returns (uint256) {
        return seed % 8;
    }

    /// @dev The mock verifier finds that `item.key` opens the item.
    function tellKey(Item memory item) internal {
        EnvelopeParts memory parts = caller.decode(item.data);
        verifier.tell(parts.ad, parts.c, parts.d, parts.e, item.key);
    }

    /// @dev The k of an envelope's header C = [k]₁: one of few, whose points are computed once.
    function exponentOf(uint256 seed) internal pure virtual returns (uint256) {
        return 1_000 + uint256(keccak256(abi.encode("c", seed))) % 256;
    }

    /// @dev The right singleton release of an envelope: [τ·k]₁.
    function releaseOf(uint256 seed) internal returns (bytes memory) {
        return compressedG1(mulmod(exponentOf(seed), committees.TAU(), BlsSigner.ORDER));
    }

    function compressedG1(uint256 k) internal returns (bytes memory point) {
        point = points[k];
        if (point.length != 0) return point;
        point = BlsSigner.compressedG1(k);
        points[k] = point;
    }

    function envelope(uint256 seed, uint256 length) internal returns (bytes memory) {
        bytes memory c = compressedG1(exponentOf(seed));
        bytes memory e = new bytes(length);
        for (uint256 i = 0; i < length; i += 32) {
            bytes32 word = keccak256(abi.encode("e", seed, i));
            assembly ("memory-safe") {
                mstore(add(add(e, 32), i), word)
            }
        }
        return bytes.concat(
            abi.encodePacked(
                uint8(2), uint64(42), uint64(31_337), address(0xb11ed), uint64(1), bytes32(seed)
            ),
            abi.encodePacked(address(0xfee), uint64(seed), uint128(9), uint128(2), uint128(3)),
            abi.encodePacked(uint64(50_000), uint64(99), uint8(0)),
            c,
            bytes16(keccak256(abi.encode("d", seed))),
            new bytes(80 + 65),
            abi.encodePacked(uint32(length), e)
        );
    }

    /// @dev A leaf over any data.
    function dataLeaf(bytes memory data) internal pure returns (bytes32) {
        return keccak256(bytes.concat(hex"00", data));
    }

    function itemLeaves(Item[] memory items) internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](items.length);
        for (uint256 i = 0; i < items.length; i++) {
            leaves[i] = dataLeaf(abi.encodePacked(items[i].id, keccak256(items[i].data), items[i].code));
        }
    }

    function rootOfItems(Item[] memory items) internal pure returns (bytes32 root) {
        (root,) = MerkleProofs.prove(itemLeaves(items), 0);
    }

    function headerLeaves(Built memory b) internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](b.headers.length);
        for (uint256 i = 0; i < leaves.length; i++) {
            bytes32 hash = keccak256(abi.encode(BatchHeaders.TYPEHASH, b.headers[i]));
            leaves[i] = dataLeaf(abi.encodePacked(hash));
        }
    }

    // Hints

    /// @dev The right hints, batch by batch.
    function rightEntries(Built memory b) internal pure returns (BatchHints[] memory hints_) {
        hints_ = new BatchHints[](b.items.length);
        for (uint256 i = 0; i < hints_.length; i++) {
            for (uint256 j = 0; j < b.items[i].length; j++) {
                Item memory item = b.items[i][j];
                hints_[i].entries = abi.encodePacked(hints_[i].entries, item.kind, item.key);
                if (item.kind == 2) hints_[i].releases = bytes.concat(hints_[i].releases, item.release);
            }
        }
    }

    /// @dev Overwrites one entry.
    function setEntry(BatchHints[] memory hints_, uint256 batch, uint256 index, uint8 kind, bytes16 key)
        internal
        pure
    {
        bytes memory entry = abi.encodePacked(kind, key);
        for (uint256 i = 0; i < 17; i++) {
            hints_[batch].entries[17 * index + i] = entry[i];
        }
    }

    /// @dev Calls one item malformed, with this release behind all others.
    function callMalformed(BatchHints[] memory hints_, uint256 batch, uint256 index, bytes memory release)
        internal
        pure
    {
        bytes16 place = bytes16(uint128(hints_[batch].releases.length / 48));
        setEntry(hints_, batch, index, 2, place);
        hints_[batch].releases = bytes.concat(hints_[batch].releases, release);
    }

    /// @dev Every accepted item called malformed, with a point of G1 for its release that is not the right one.
    function allMalformed(Built memory b) internal view returns (BatchHints[] memory hints_) {
        hints_ = rightEntries(b);
        for (uint256 i = 0; i < hints_.length; i++) {
            hints_[i].releases = "";
            for (uint256 j = 0; j < b.items[i].length; j++) {
                if (b.items[i][j].kind != 0) {
                    callMalformed(hints_, i, j, caller.decode(b.items[i][j].data).c);
                }
            }
        }
    }

    /// @dev `HintData`.
    function encode(BatchHints[] memory hints_) internal pure returns (bytes memory data) {
        data = abi.encodePacked(uint8(2), uint32(hints_.length));
        for (uint256 i = 0; i < hints_.length; i++) {
            (bytes memory entries, bytes memory releases) = (hints_[i].entries, hints_[i].releases);
            data = abi.encodePacked(
                data, uint32(entries.length / 17), entries, uint32(releases.length / 48), releases
            );
        }
    }

    /// @dev All chunks' leaves of a posting, written apart from the contract's.
    function chunkLeaves(uint64 first, BatchHints[] memory hints_) internal pure returns (bytes32[] memory) {
        bytes32[] memory leaves = new bytes32[](leafAt(hints_, hints_.length));
        uint256 next = 0;
        for (uint256 i = 0; i < hints_.length; i++) {
            bytes memory entries = hints_[i].entries;
            for (uint32 j = 0; j < chunkCount(entries); j++) {
                leaves[next++] = dataLeaf(
                    abi.encodePacked(
                        first + uint64(i),
                        uint32(entries.length / 17),
                        j,
                        keccak256(chunkOf(entries, j)),
                        commitmentOf(hints_[i].releases)
                    )
                );
            }
        }
        return leaves;
    }

    /// @dev The hashes of the chunks of a list of singleton releases.
    function releaseHashesOf(bytes memory releases) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[]((releases.length + 48 * 128 - 1) / (48 * 128));
        for (uint256 i = 0; i < hashes.length; i++) {
            hashes[i] = keccak256(cut(releases, i, 48));
        }
    }

    function commitmentOf(bytes memory releases) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(releaseHashesOf(releases)));
    }

    function chunkCount(bytes memory entries) internal pure returns (uint256) {
        return entries.length == 0 ? 1 : (entries.length / 17 + 127) / 128;
    }

    /// @dev The posting's leaf that is the first of a batch.
    function leafAt(BatchHints[] memory hints_, uint256 batch) internal pure returns (uint256 leaf) {
        for (uint256 i = 0; i < batch; i++) {
            leaf += chunkCount(hints_[i].entries);
        }
    }

    function chunkOf(bytes memory entries, uint256 chunk) internal pure returns (bytes memory) {
        return cut(entries, chunk, 17);
    }

    /// @dev Part `part` of a list whose parts have 128 things of `size` bytes.
    function cut(bytes memory list, uint256 part, uint256 size) internal pure returns (bytes memory out) {
        uint256 start = part * 128 * size;
        uint256 end = start + 128 * size;
        if (end > list.length) end = list.length;
        out = new bytes(end - start);
        assembly ("memory-safe") {
            mcopy(add(out, 32), add(add(list, 32), start), sub(end, start))
        }
    }

    function rootOf(uint64 first, BatchHints[] memory hints_) internal pure returns (bytes32) {
        bytes32[] memory leaves = chunkLeaves(first, hints_);
        (bytes32 root,) = MerkleProofs.prove(leaves, 0);
        return keccak256(abi.encode(leaves.length, root));
    }

    // Calls

    function fund(address publisher, uint256 amount) internal {
        vm.deal(publisher, publisher.balance + amount);
        vm.prank(publisher);
        hints.depositBond{ value: amount }();
    }

    function post(address publisher, RunReference memory run, bytes memory data) internal returns (uint64) {
        vm.prank(publisher, publisher);
        return hints.postHints(run, data);
    }

    /// @dev The challenge of one entry, all of it right. The index may be one that only the posting has.
    function challengeOf(Built memory b, BatchHints[] memory hints_, uint256 batch, uint32 index)
        internal
        pure
        returns (Challenge memory c)
    {
        c.run = b.run;
        c.header = b.headers[batch];
        (, c.headerProof) = MerkleProofs.prove(headerLeaves(b), batch);
        bytes memory entries = hints_[batch].entries;
        c.chunkIndex = index / 128;
        c.chunk = chunkOf(entries, c.chunkIndex);
        c.leafIndex = uint32(leafAt(hints_, batch) + c.chunkIndex);
        bytes32[] memory leaves = chunkLeaves(b.run.first, hints_);
        c.leafCount = uint32(leaves.length);
        (, c.chunkProof) = MerkleProofs.prove(leaves, c.leafIndex);
        c.releases = commitmentOf(hints_[batch].releases);
        c.count = uint32(entries.length / 17);
        c.index = index;
        if (index >= c.count) return c;
        if (uint8(entries[17 * index]) == 2) showRelease(c, hints_[batch]);
        if (index >= b.items[batch].length) return c;
        Item memory item = b.items[batch][index];
        c.itemHash = keccak256(item.data);
        c.id = item.id;
        c.code = item.code;
        (, c.itemProof) = MerkleProofs.prove(itemLeaves(b.items[batch]), index);
        c.item = item.data;
        c.key = item.key;
    }

    /// @dev Shows the release that the challenged entry names.
    function showRelease(Challenge memory c, BatchHints memory shown) internal pure {
        bytes memory place = BlsSigner.slice(shown.entries, 17 * c.index + 1, 16);
        uint256 chunk = uint256(uint128(bytes16(place))) / 128;
        c.releaseHashes = releaseHashesOf(shown.releases);
        if (chunk < c.releaseHashes.length) c.releaseChunk = cut(shown.releases, chunk, 48);
    }

    /// @dev Commits to a challenge and lets a block pass.
    function commitTo(address challenger, uint64 id, Challenge memory c) internal {
        bytes32 evidence = keccak256(abi.encode(id, c.header.number, c.index));
        hints.commit(keccak256(abi.encode(challenger, evidence, SALT)));
        vm.roll(block.number + 1);
        vm.deal(challenger, challenger.balance + STAKE);
    }

    function challenge(address challenger, uint64 id, Challenge memory c) internal {
        // A bound, so that a verifier that burns all it gets does not burn the whole test's.
        vm.prank(challenger);
        hints.challenge{ value: STAKE, gas: 5_000_000 }(id, c, SALT);
    }

    /// @dev The challenged envelope as a plaintext proof with its right key.
    function plaintextOf(Challenge memory c) internal pure returns (PlaintextProof memory) {
        return PlaintextProof({
            run: c.run,
            header: c.header,
            headerProof: c.headerProof,
            index: c.index,
            code: c.code,
            id: c.id,
            itemProof: c.itemProof,
            item: c.item,
            key: c.key
        });
    }

    function finalHintOf(Challenge memory c) internal pure returns (FinalHint memory) {
        return FinalHint({
            chunk: c.chunk,
            leafIndex: c.leafIndex,
            leafCount: c.leafCount,
            chunkProof: c.chunkProof,
            releases: c.releases,
            blobs: c.blobs
        });
    }

    function checkBond(address publisher, uint256 total, uint256 locked) internal view {
        (uint128 total_, uint128 locked_) = hints.bondOf(publisher);
        checkEqual(total_, total, "bond");
        checkEqual(locked_, locked, "locked");
    }
}
