// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FinalHint, HintEvidence, PlaintextProof } from "./HintEvidence.sol";
import { IBlindedInbox, RunReference } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { IHintVerifier } from "./interfaces/IHintVerifier.sol";
import { BatchHeader } from "./libraries/BatchHeaders.sol";
import { EnvelopeTree } from "./libraries/EnvelopeTree.sol";
import { EnvelopeParts, Envelopes } from "./libraries/Envelopes.sol";
import { HintBlobs } from "./libraries/HintBlobs.sol";
import { HintData } from "./libraries/HintData.sol";
import { MerkleTree } from "./libraries/MerkleTree.sol";
import { MessageStream } from "./libraries/MessageStream.sol";

/// @title Decrypted messages for L1 contracts
/// @notice Gives any contract the message of an accepted envelope of a posted batch, in one of two ways:
/// `provePlaintext` re-encrypts it and compares, and needs nothing but the key; `readPlaintext` takes the key from
/// the run's final hints, which costs a few Merkle proofs only.
///
/// Both speak of **decryption, not of execution**: that the envelope was ordered and what it says, not what became of
/// the transactions in it, nor whether its run was declared void afterwards. A consumer acts once for an envelope id.
/// @dev Part of HintJudge; keeps no storage and moves no ether.
abstract contract PlaintextReader is HintEvidence {
    /// @notice The headers.
    IBlindedInbox public immutable inbox;
    /// @notice The encryption keys.
    ICommitteeRegistry public immutable registry;
    /// @notice The check of one hint.
    IHintVerifier public immutable verifier;

    /// @notice The registry was made for another inbox.
    error ForeignRegistry(address inbox);
    /// @notice There is no contract at this address.
    error NotAContract(address given);

    constructor(IBlindedInbox inbox_, ICommitteeRegistry registry_, IHintVerifier verifier_) {
        if (registry_.inbox() != address(inbox_)) revert ForeignRegistry(registry_.inbox());
        if (address(verifier_).code.length == 0) revert NotAContract(address(verifier_));
        inbox = inbox_;
        registry = registry_;
        verifier = verifier_;
    }

    /// @notice The message of an envelope, by the full check of its key; no hints need to be there.
    /// @return envelopeId The envelope.
    /// @return message What it says: a `Bundle` with its padding.
    function provePlaintext(PlaintextProof calldata given)
        external
        view
        returns (bytes32 envelopeId, bytes memory message)
    {
        EnvelopeParts memory parts = accepted(given);
        bool ok;
        (ok, message) = opens(parts, given.header.epoch, given.key);
        if (!ok) revert WrongKey();
        return (given.id, message);
    }

    /// @notice The message of an envelope, by the key that stands in the final hints of its run.
    /// @return envelopeId The envelope.
    /// @return message What it says: a `Bundle` with its padding.
    function readPlaintext(PlaintextProof calldata given, FinalHint calldata hint)
        external
        view
        returns (bytes32 envelopeId, bytes memory message)
    {
        bytes32 root = finalRoot(given.run.last);
        if (root == 0) revert RunNotFinal(given.run.last);
        EnvelopeParts memory parts = accepted(given);
        (uint8 kind, bytes16 key) = hint.blobs.versionedHashes.length == 0
            ? entryInCalldata(given, hint, root)
            : entryInBlobs(given, hint.blobs, root);
        if (kind != HintData.KEY || key != given.key) revert WrongKey();
        return (given.id, MessageStream.decrypt(key, parts.ad, parts.e));
    }

    /// @notice Root of the hints that are final for the run that ends at `runLast`; zero for none.
    function finalRoot(uint64 runLast) public view virtual returns (bytes32);

    /// @dev Whether the key opens the envelope, and the message. A verifier that fails makes this revert.
    function opens(EnvelopeParts memory parts, uint64 epoch, bytes16 key)
        internal
        view
        returns (bool ok, bytes memory message)
    {
        bytes memory encryptionKey = registry.encryptionKey(epoch);
        return verifier.verify(parts.ad, parts.c, parts.d, parts.e, key, encryptionKey);
    }

    /// @dev Reverts unless the header was posted in the run.
    function requirePosted(BatchHeader calldata header, RunReference calldata run, bytes32[] calldata proof)
        internal
        view
    {
        (bool posted,) = inbox.verifyHeader(header, run, proof);
        if (!posted) revert HeaderNotPosted(header.number);
    }

    /// @dev The entry as the final hints have it in their calldata.
    function entryInCalldata(PlaintextProof calldata given, FinalHint calldata hint, bytes32 root)
        private
        pure
        returns (uint8 kind, bytes16 key)
    {
        HintData.Place memory place = HintData.Place({
            number: given.header.number,
            count: given.header.envelopeCount,
            chunkIndex: uint32(given.index / HintData.CHUNK_ENTRIES),
            leafIndex: hint.leafIndex,
            leafCount: hint.leafCount,
            releases: hint.releases
        });
        if (HintData.rootOf(place, hint.chunk, hint.chunkProof) != root) {
            revert ChunkNotFinal(given.run.last);
        }
        return HintData.entry(hint.chunk, given.index);
    }

    /// @dev The entry as the final hints have it in their blobs.
    function entryInBlobs(PlaintextProof calldata given, HintBlobs.Evidence calldata hint, bytes32 root)
        private
        view
        returns (uint8 kind, bytes16 key)
    {
        if (HintBlobs.rootOf(hint, given.run.first) != root) revert ChunkNotFinal(given.run.last);
        HintBlobs.Place memory place =
            HintBlobs.placeOf(hint.index, given.header.number - given.run.first, given.index);
        if (place.count != given.header.envelopeCount) revert ChunkNotFinal(given.run.last);
        return HintBlobs.entry(hint, place.entry);
    }

    /// @dev The envelope, which was posted and accepted.
    function accepted(PlaintextProof calldata given) private view returns (EnvelopeParts memory parts) {
        requirePosted(given.header, given.run, given.headerProof);
        if (given.code != EnvelopeTree.ACCEPTED) revert NotAccepted(given.code);
        bytes32 leaf = EnvelopeTree.leaf(given.id, keccak256(given.item), given.code);
        BatchHeader calldata header = given.header;
        if (!MerkleTree.verify(header.envelopeRoot, header.envelopeCount, given.index, leaf, given.itemProof))
        {
            revert ItemNotInBatch(header.number, given.index);
        }
        parts = Envelopes.decode(given.item);
        bytes32 id = Envelopes.id(parts);
        if (id != given.id) revert WrongEnvelope(given.id, id);
    }
}
