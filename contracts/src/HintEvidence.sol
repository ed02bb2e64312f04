// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { RunReference } from "./interfaces/IBlindedInbox.sol";
import { BatchHeader } from "./libraries/BatchHeaders.sol";
import { HintBlobs } from "./libraries/HintBlobs.sol";

/// @notice One disputed entry with everything that it is judged by.
struct Challenge {
    /// The posting's run.
    RunReference run;
    /// Header of the entry's batch.
    BatchHeader header;
    /// Its siblings in the run.
    bytes32[] headerProof;
    /// The chunk of entries as it was posted.
    bytes chunk;
    /// Its place in the batch.
    uint32 chunkIndex;
    /// Its place in the posting.
    uint32 leafIndex;
    /// How many chunks the posting has.
    uint32 leafCount;
    /// The chunk's siblings.
    bytes32[] chunkProof;
    /// Commitment to the batch's singleton releases; see HintData.
    bytes32 releases;
    /// How many entries the posting gives the batch.
    uint32 count;
    /// The item's place in the batch.
    uint32 index;
    /// keccak256 of the item.
    bytes32 itemHash;
    /// Its envelope id; zero for an item that is none.
    bytes32 id;
    /// Its verdict code.
    uint8 code;
    /// Its siblings in the envelope tree.
    bytes32[] itemProof;
    /// The item itself; empty where no ciphertext is needed.
    bytes item;
    /// For an envelope that is called malformed, the key that opens it, where there is one.
    bytes16 key;
    /// For an envelope that is called malformed in calldata, what `releases` commits to, and the chunk of it that holds
    /// the release that the entry names; both empty else, the chunk also where there is none for that place.
    bytes32[] releaseHashes;
    bytes releaseChunk;
    /// For hints in blobs the entry, and then neither the chunk nor its places nor `count` are looked at; empty for
    /// hints in calldata.
    HintBlobs.Evidence blobs;
}

/// @notice An accepted envelope of a posted batch and the key that opens it.
struct PlaintextProof {
    /// The run of the batch.
    RunReference run;
    /// The batch's header.
    BatchHeader header;
    /// Its siblings in the run.
    bytes32[] headerProof;
    /// The item's place in the batch.
    uint32 index;
    /// Its verdict code: 0, accepted.
    uint8 code;
    /// Its envelope id.
    bytes32 id;
    /// Its siblings in the envelope tree.
    bytes32[] itemProof;
    /// The item.
    bytes item;
    /// The session key.
    bytes16 key;
}

/// @notice Where the final hints of a run hold the key.
struct FinalHint {
    /// The chunk of entries as it was posted.
    bytes chunk;
    /// Its place in the posting.
    uint32 leafIndex;
    /// How many chunks the posting has.
    uint32 leafCount;
    /// The chunk's siblings.
    bytes32[] chunkProof;
    /// Commitment to the batch's singleton releases.
    bytes32 releases;
    /// For hints in blobs the entry, and then nothing of the above is looked at; empty for hints in calldata.
    HintBlobs.Evidence blobs;
}

/// @title What is shown about an item of a posted batch and its hint, and what can be wrong with it
/// @dev Shared by HintRegistry, which takes it, and HintJudge, which judges it.
abstract contract HintEvidence {
    /// @notice The posting's count of a batch is not that of its header.
    uint8 public constant REASON_WRONG_COUNT = 1;
    /// @notice An entry of no known kind, or none that could be read in the blobs.
    uint8 public constant REASON_UNKNOWN_KIND = 2;
    /// @notice Key bytes in an entry that has no key.
    uint8 public constant REASON_STRAY_KEY = 3;
    /// @notice Skipped although the item was accepted, or not skipped although it was not.
    uint8 public constant REASON_WRONG_VERDICT = 4;
    /// @notice The key does not open the envelope.
    uint8 public constant REASON_WRONG_KEY = 5;
    /// @notice Called malformed although a key opens it.
    uint8 public constant REASON_NOT_MALFORMED = 6;
    /// @notice The index of hints in blobs calls the item malformed and the entry does not, or the other way round.
    uint8 public constant REASON_OTHER_INDEX = 7;
    /// @notice Called malformed with no singleton release: its place is behind the list's end, or cannot be read in the
    /// blobs.
    uint8 public constant REASON_NO_RELEASE = 8;
    /// @notice Called malformed with another singleton release than the ciphertext's, or with what is no point.
    uint8 public constant REASON_WRONG_RELEASE = 9;

    /// @notice The header was not posted in this run.
    error HeaderNotPosted(uint64 number);
    /// @notice The item with its siblings does not lead to the header's envelope root.
    error ItemNotInBatch(uint64 number, uint256 index);
    /// @notice The committee did not accept the item, so nobody decrypts it.
    error NotAccepted(uint8 code);
    /// @notice The item is another envelope than the one named.
    error WrongEnvelope(bytes32 expected, bytes32 given);
    /// @notice The run has no final hints yet.
    error RunNotFinal(uint64 last);
    /// @notice The chunk with its places and siblings, or the index with the versioned hashes, does not lead to the root
    /// of the final hints, or these have another number of entries for the batch.
    error ChunkNotFinal(uint64 last);
    /// @notice The key does not open the envelope, or is not the one in the final hints.
    error WrongKey();
    /// @notice The posting is of another run.
    error WrongRun(uint64 given, uint64 postings);
    /// @notice The chunk with its places and siblings, or the index with the versioned hashes, does not lead to the
    /// posting's root.
    error ChunkNotInPosting(uint64 id);
    /// @notice The chunk does not hold this index, or the batch has no such item.
    error IndexNotInChunk(uint256 index);
    /// @notice The hashes of the singleton releases are not those that the entry's leaf commits to, or the chunk of them is
    /// another one.
    error WrongReleases(bytes32 expected, bytes32 given);
    /// @notice The item's bytes have another hash.
    error WrongItem(bytes32 expected, bytes32 given);
}
