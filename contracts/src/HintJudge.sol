// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Challenge } from "./HintEvidence.sol";
import { PlaintextReader } from "./PlaintextReader.sol";
import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { IHintRoots } from "./interfaces/IHintRoots.sol";
import { IHintVerifier } from "./interfaces/IHintVerifier.sol";
import { EnvelopeTree } from "./libraries/EnvelopeTree.sol";
import { EnvelopeParts, Envelopes } from "./libraries/Envelopes.sol";
import { HintBlobs } from "./libraries/HintBlobs.sol";
import { HintData } from "./libraries/HintData.sol";
import { MerkleTree } from "./libraries/MerkleTree.sol";
import { SingletonReleases } from "./libraries/SingletonReleases.sol";

/// @title What one disputed entry of posted hints must be
/// @notice Made by HintRegistry, once and for all, because one contract has no room for both. It keeps no storage,
/// holds no ether and decides nothing but what its answer says; HintRegistry acts on it.
///
/// It says that an entry is wrong only after a completed comparison; what it cannot judge makes it revert.
contract HintJudge is PlaintextReader {
    /// @dev The HintRegistry that made this contract.
    IHintRoots private immutable hints;

    constructor(IBlindedInbox inbox_, ICommitteeRegistry registry_, IHintVerifier verifier_)
        PlaintextReader(inbox_, registry_, verifier_)
    {
        hints = IHintRoots(msg.sender);
    }

    /// @inheritdoc PlaintextReader
    function finalRoot(uint64 runLast) public view override returns (bytes32) {
        return hints.finalRoot(runLast);
    }

    /// @notice What is wrong with the entry: one of the reasons, or 0 when it is right. Reverts when that cannot be told.
    /// @param id The posting, for the errors.
    /// @param runLast Last number of its run.
    /// @param root Its root.
    function judge(uint64 id, uint64 runLast, bytes32 root, Challenge calldata given)
        external
        view
        returns (uint8 reason)
    {
        uint64 number = given.header.number;
        if (given.run.last != runLast) revert WrongRun(given.run.last, runLast);
        requirePosted(given.header, given.run, given.headerProof);
        uint8 kind;
        bytes16 key;
        bool inBlobs = given.blobs.versionedHashes.length != 0;
        (reason, kind, key) = inBlobs ? entryInBlobs(id, root, given) : entryInCalldata(id, root, given);
        if (reason != 0) return reason;
        if (kind > HintData.MALFORMED) return REASON_UNKNOWN_KIND;
        // In calldata a malformed entry names its release there; in blobs the index does.
        bool empty = kind == HintData.SKIPPED || inBlobs;
        if (kind != HintData.KEY && empty && key != 0) return REASON_STRAY_KEY;
        bytes32 leaf = EnvelopeTree.leaf(given.id, given.itemHash, given.code);
        if (!MerkleTree.verify(
                given.header.envelopeRoot, given.header.envelopeCount, given.index, leaf, given.itemProof
            )) {
            revert ItemNotInBatch(number, given.index);
        }
        if ((given.code == EnvelopeTree.ACCEPTED) != (kind != HintData.SKIPPED)) return REASON_WRONG_VERDICT;
        if (kind == HintData.SKIPPED) return 0;

        bytes32 itemHash = keccak256(given.item);
        if (itemHash != given.itemHash) revert WrongItem(given.itemHash, itemHash);
        EnvelopeParts memory parts = Envelopes.decode(given.item);
        uint64 epoch = given.header.epoch;
        if (kind == HintData.KEY) {
            (bool opened,) = opens(parts, epoch, key);
            return opened ? 0 : REASON_WRONG_KEY;
        }
        bytes memory release = inBlobs ? releaseInBlobs(given) : releaseInCalldata(given, key);
        if (release.length == 0) return REASON_NO_RELEASE;
        if (!SingletonReleases.isRight(release, parts.c, registry.h1(epoch))) return REASON_WRONG_RELEASE;
        // From the right release everybody computes the key, if there is one.
        (bool wellFormed,) = opens(parts, epoch, given.key);
        return wellFormed ? REASON_NOT_MALFORMED : 0;
    }

    /// @dev The singleton release that a malformed entry names; empty when there is none at that place.
    function releaseInCalldata(Challenge calldata given, bytes16 key) private pure returns (bytes memory) {
        bytes32 hash = keccak256(abi.encodePacked(given.releaseHashes));
        if (hash != given.releases) revert WrongReleases(given.releases, hash);
        uint256 place = uint128(key);
        uint256 chunk = place / HintData.CHUNK_ENTRIES;
        if (chunk >= given.releaseHashes.length) return "";
        hash = keccak256(given.releaseChunk);
        if (hash != given.releaseHashes[chunk]) revert WrongReleases(given.releaseHashes[chunk], hash);
        uint256 start = (place % HintData.CHUNK_ENTRIES) * HintData.SINGLETON_BYTES;
        uint256 end = start + HintData.SINGLETON_BYTES;
        return end > given.releaseChunk.length ? bytes("") : given.releaseChunk[start:end];
    }

    /// @dev The singleton release of the disputed entry, where the index puts it; empty when none can be read there.
    function releaseInBlobs(Challenge calldata given) private view returns (bytes memory) {
        uint256 place =
            HintBlobs.releaseOf(given.blobs.index, given.header.number - given.run.first, given.index);
        return HintBlobs.release(given.blobs, place);
    }

    /// @dev The disputed entry of hints in calldata, or that the batch has another number of them.
    function entryInCalldata(uint64 id, bytes32 root, Challenge calldata given)
        private
        pure
        returns (uint8 reason, uint8 kind, bytes16 key)
    {
        HintData.Place memory place = HintData.Place({
            number: given.header.number,
            count: given.count,
            chunkIndex: given.chunkIndex,
            leafIndex: given.leafIndex,
            leafCount: given.leafCount,
            releases: given.releases
        });
        if (HintData.rootOf(place, given.chunk, given.chunkProof) != root) revert ChunkNotInPosting(id);
        if (given.count != given.header.envelopeCount) return (REASON_WRONG_COUNT, 0, 0);
        if (!HintData.holds(place, given.index)) revert IndexNotInChunk(given.index);
        (kind, key) = HintData.entry(given.chunk, given.index);
    }

    /// @dev The disputed entry of hints in blobs, or that the index is wrong about its batch or about it.
    function entryInBlobs(uint64 id, bytes32 root, Challenge calldata given)
        private
        view
        returns (uint8 reason, uint8 kind, bytes16 key)
    {
        HintBlobs.Evidence calldata shown = given.blobs;
        if (HintBlobs.rootOf(shown, given.run.first) != root) revert ChunkNotInPosting(id);
        HintBlobs.Place memory place =
            HintBlobs.placeOf(shown.index, given.header.number - given.run.first, given.index);
        if (place.count != given.header.envelopeCount) return (REASON_WRONG_COUNT, 0, 0);
        if (given.index >= place.count) revert IndexNotInChunk(given.index);
        (kind, key) = HintBlobs.entry(shown, place.entry);
        if (kind <= HintData.MALFORMED && (kind == HintData.MALFORMED) != place.isMalformed) {
            reason = REASON_OTHER_INDEX;
        }
    }
}
