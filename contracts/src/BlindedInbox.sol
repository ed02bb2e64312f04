// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FaultReports } from "./FaultReports.sol";
import { PostedHeaders } from "./PostedHeaders.sol";
import { SequencerBond } from "./SequencerBond.sol";
import { Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { ForcedEntry, IForcedQueue } from "./interfaces/IForcedQueue.sol";
import { BatchHeader, BatchHeaders } from "./libraries/BatchHeaders.sol";
import { Domain } from "./libraries/Domain.sol";
import { EnvelopeTree } from "./libraries/EnvelopeTree.sol";
import { HintData } from "./libraries/HintData.sol";
import { MerkleTree } from "./libraries/MerkleTree.sol";

/// @title Certified batch headers, headers made by L1, and the sequencer's bond
/// @notice Takes runs of certified headers in order. A certificate covers all ancestors, so a run needs only the one
/// of its last header; every header of a run is of that one's epoch, so exactly one committee certifies a number. A
/// header that leaves out a due entry of the ForcedQueue is refused, whoever certified it.
///
/// Hints are posted for a whole run, in one transaction. So a list of headers whose hints might not fit one is cut
/// into several runs here, each as long as `MAX_RUN_HINT_BYTES` allows, and a header that is too large alone is a run
/// of its own: none is ever refused for its size, and no posting keeps hints out.
///
/// When nothing certified comes for `postingDeadline` blocks, when a forced item is overdue by as much, or when two
/// headers of the next number were shown and neither was posted, anyone makes L1 write the next header itself, with the
/// forced items that are due (`postL1Header`).
///
/// Data: the envelopes travel as calldata or blobs and are **not checked here**: nodes compare them with the envelope
/// roots, ignore bytes that do not match, and anyone may post them again. Runs and data are posted by top-level
/// transactions of plain accounts only, so a reader finds them in the input of the transaction that emitted the event.
///
/// | slot | storage | in |
/// |---|---|---|
/// | 0 | `head`: number u64, timestampMs u64, l1OriginNumber u64, forcedCursor u64 | PostedHeaders |
/// | 1 | `headHash` | |
/// | 2 | `lastCertifiedAt` u64, `headPostedAt` u64, `lastCertifiedTime` u64, `firstPostedAt` u64 | |
/// | 3 | `runCommitment[last]` = keccak256(first ‖ last ‖ postedAt ‖ headerRoot), a word each | |
/// | 4 | `l1Made[]`: number u64, madeAt u64 | |
/// | 5 | `committedAt[commitment]` | CommitReveal |
/// | 6 | `accounts[sequencer]`: staked u128, openAccusations u64, slashedAt u64; announced amount u128, announcedAt u64, headOrigin u64 | SequencerBond |
/// | 7, 8 | `openAccusations`; `rewards[reporter]` | |
/// | 9, 10 | `equivocatedAt[number]`; `shownTogether[signer][evidence]` | FaultRecords |
/// | 11 | `accusations[promiseId]`: accuser 160, state u8, accusedAt u64 | |
///
/// Reports of the sequencer's faults run the code of another contract, `faults`, on this storage.
/// @dev Nobody can take funds out but: the sequencer its own bond, after a delay; a reporter its reward or stake.
contract BlindedInbox is FaultReports {
    using BatchHeaders for BatchHeader;

    /// @notice The most forced items in one batch.
    uint64 public constant MAX_FORCED_ITEMS = 16;
    /// @notice The most bytes that the hints of a run of several headers can take, whatever is in its batches: what a
    /// transaction that nodes relay, of 128 KiB, has room for.
    uint256 public constant MAX_RUN_HINT_BYTES = 130_560;
    /// @notice How far a header's time may be ahead of L1's.
    uint256 public constant MAX_TIME_LEAD_SECONDS = 1 hours;

    /// @notice Certificate of a run's last header, which gives its epoch, number and header hash.
    struct Certificate {
        /// Bit j−1 is set for member j.
        uint64 signers;
        /// Aggregate BLS signature in G1, 128 bytes as in EIP-2537.
        bytes signature;
    }

    /// @dev What was read of the forced queue while a run is checked.
    struct QueueView {
        uint64 length;
        /// The entry that was looked up last, and its block.
        uint64 index;
        uint64 enqueuedAt;
    }

    /// @notice The items that headers must take.
    IForcedQueue public immutable queue;

    /// @notice The transaction that posted this run carries blobs with these versioned hashes; nobody has checked them.
    event BlobsPosted(uint64 indexed firstNumber, uint64 indexed lastNumber, bytes32[] versionedHashes);
    /// @notice `poster` posted data for batches from `firstNumber` on, in the input and in blobs with these versioned
    /// hashes; nobody has checked it.
    event DataPosted(uint64 indexed firstNumber, address indexed poster, bytes32[] versionedHashes);
    /// @notice `poster` called `post` with headers that were posted already, these numbers, and maybe further ones. The data
    /// of the call, in its input or in blobs with these versioned hashes, is for all its headers, from `firstNumber` on;
    /// nobody has checked it, nor the headers that were passed over.
    event PostedAgain(
        uint64 indexed firstNumber,
        uint64 indexed lastNumber,
        address indexed poster,
        bytes32[] versionedHashes
    );
    /// @notice L1 made this header. Its items are the entries of the forced queue between its parent's cursor and its
    /// own: a transaction with code 0xff, an envelope with code 0xfe, ids zero.
    event L1Header(uint64 indexed number, bytes32 headerHash, BatchHeader header);

    /// @notice The registry was made for another inbox.
    error ForeignRegistry(address inbox);
    /// @notice The call comes from a contract, or from an account that delegates to one.
    error NotTopLevel();
    /// @notice A run without headers.
    error EmptyRun();
    /// @notice A header of a version that this contract does not understand.
    error UnsupportedVersion(uint8 version);
    /// @notice The header does not follow the one before; the run may have been posted already.
    error WrongNumber(uint64 expected, uint64 given);
    /// @notice The header's parent is another header than the one before.
    error WrongParent(uint64 number, bytes32 expected, bytes32 given);
    /// @notice The header is not later than its parent.
    error TimeNotIncreasing(uint64 number);
    /// @notice The header's L1 origin is older than its parent's.
    error OriginDecreasing(uint64 number);
    /// @notice The header's time is more than `maxOriginAgeSeconds` ahead of its L1 origin's: who holds origins back holds
    /// back what L1 forces.
    error OriginHeldBack(uint64 number);
    /// @notice The run's first L1 origin is below `oldest`: older than `postingDeadline`, or than the header that L1
    /// made in front of it.
    error OriginTooOld(uint64 given, uint256 oldest);
    /// @notice The last header's L1 origin is not an earlier block than this one.
    error OriginAhead(uint64 given);
    /// @notice The end of the epoch of batch `number` is due: L1 makes that header (`postL1Header`).
    error EpochIsOver(uint64 number);
    /// @notice The certificate's bytes do not stand where the standard encoding puts them, or a header's field is beyond its
    /// type.
    error NotCanonical();
    /// @notice The last header's time is more than `MAX_TIME_LEAD_SECONDS` ahead of L1's: L1 could make no header after it.
    error TimeAhead(uint64 timestampMs);
    /// @notice The header's cursor into the forced queue is behind its parent's.
    error ForcedCursorDecreasing(uint64 number);
    /// @notice The header takes more than `MAX_FORCED_ITEMS` entries of the forced queue.
    error ForcedCapExceeded(uint64 number, uint64 taken);
    /// @notice The header's cursor is beyond the forced queue's end.
    error ForcedCursorAhead(uint64 cursor, uint64 length);
    /// @notice The header leaves out entry `index` of the forced queue, which is due at its L1 origin.
    error ForcedItemIgnored(uint64 number, uint64 index);
    /// @notice The header names another epoch than the last one of the run: post the epochs' runs apart.
    error RunCrossesEpoch(uint64 number);
    /// @notice The rule set of the run's last number is `expected`: post numbers of others apart.
    error WrongRules(uint64 number, uint16 expected);
    /// @notice Data for a number that has not been posted.
    error NotPosted(uint64 number);
    /// @notice L1 may not make the next header before the L1 block `from`; certified ones may come until then.
    error L1HeaderNotDue(uint256 from);
    /// @notice The second of the parent is not over on L1: try again in the next L1 block.
    error SecondNotOver(uint256 second);
    /// @notice No forced item is due, the parent has no items whose second had to be closed, and it was posted less than
    /// `postingDeadline` ago.
    error NothingToInclude();

    /// @param registry_ The CommitteeRegistry made for this address.
    /// @param queue_ The ForcedQueue made for this address.
    /// @param timing_ All deadlines of the deployment.
    constructor(ICommitteeRegistry registry_, IForcedQueue queue_, Timing memory timing_)
        PostedHeaders(timing_)
        SequencerBond(registry_, address(this))
        FaultReports(registry_, timing_)
    {
        if (registry_.inbox() != address(this)) revert ForeignRegistry(registry_.inbox());
        queue = queue_;
        headHash = Domain.genesisHash(domainSeparator);
    }

    /// @dev A plain account calls this contract directly, so that the whole call is the transaction's input.
    modifier onlyTopLevel() {
        if (msg.sender != tx.origin || msg.sender.code.length != 0) revert NotTopLevel();
        _;
    }

    /// @notice Posts headers that follow the head, with the certificate of the last. Anyone may. They are one run, or
    /// as many as their hints take: one event `Posted` each.
    ///
    /// Headers in front that are posted already are passed over, unlooked at, so that somebody who posts a part of them
    /// first, or all, does not make this transaction revert with its data paid for: the rest is posted, if there is any, and
    /// the data counts for all (`PostedAgain`). Where the head is the last of them it must be the header that is posted.
    /// @param headers The headers in order, all of one epoch.
    /// @param data All their envelopes, as `RunData` of docs/protocol.md, or nothing; not checked here.
    /// @param certificate Certificate of the last header.
    function post(BatchHeader[] calldata headers, bytes calldata data, Certificate calldata certificate)
        external
        onlyTopLevel
    {
        data; // read from the transaction's input
        uint256 count = headers.length;
        if (count == 0) revert EmptyRun();
        requireCanonical(certificate);
        BatchHeader calldata last = headers[count - 1];
        uint256 posted = passOver(headers);
        if (posted == count) return;
        headers = headers[posted:];
        uint64 first = headers[0].number;
        // From then on the next header is L1's: who certifies on could put it off for ever.
        if (registry.endDue(first)) revert EpochIsOver(first);
        uint16 rules = registry.rulesOf(last.number);
        if (last.rules != rules) revert WrongRules(last.number, rules);
        (bytes32 newHash, bytes32[] memory leaves) = chain(headers, last.epoch, rules);
        requireFreshOrigin(headers[0].l1OriginNumber);
        if (last.l1OriginNumber >= block.number) revert OriginAhead(last.l1OriginNumber);
        if (last.timestampMs > (block.timestamp + MAX_TIME_LEAD_SECONDS) * 1_000) {
            revert TimeAhead(last.timestampMs);
        }

        uint64 epochFirst = registry.verifyCertificate(
            last.epoch, last.number, newHash, certificate.signers, certificate.signature
        );
        if (first < epochFirst) revert RunCrossesEpoch(first);

        appendRuns(headers, newHash, leaves);
        lastCertifiedAt = uint64(block.number);
        lastCertifiedTime = uint64(block.timestamp);
        if (blobhash(0) != 0) emit BlobsPosted(first, last.number, blobHashes());
    }

    /// @notice Posts data of posted batches again, from number `firstNumber` on: a `RunDataPart` of docs/protocol.md.
    /// Anyone may; nodes check it.
    function postData(uint64 firstNumber, bytes calldata data) external onlyTopLevel {
        data; // read from the transaction's input
        if (firstNumber == 0 || firstNumber > head.number) revert NotPosted(firstNumber);
        emit DataPosted(firstNumber, msg.sender, blobHashes());
    }

    /// @notice Makes the next header on L1's own word: with the forced items that are due, or empty. Anyone may,
    /// (a) when nothing certified was posted for `postingDeadline` blocks: then for `answerWindow` blocks, and after as
    /// long a pause, in which a committee that is back posts undisturbed, again, and so on;
    /// (b) when two headers of that number were shown, `answerWindow` blocks after that and after the head's posting;
    /// (c) when the next forced item has been due for `postingDeadline` blocks and nothing certified was posted for
    /// `forcedDelay` blocks: in windows as under (a), until something certified is posted; or
    /// (d) when the end of the number's epoch was announced and is due: this header is then its last.
    /// An empty one only under (b) and (d), or after a header with items, to close its second, or when L1 made none either for
    /// `postingDeadline` blocks: what was signed after the head may then be too old to be posted, and after a header of
    /// L1's it is signed anew without fault.
    /// @dev Each is of a later second than its parent, so the sums over a second hold whoever calls this how often.
    /// There is none before the first certified header, whose base fee and ledger nobody knows here. About 260,000 gas with 16 items.
    /// Rules O-3 to O-5.
    /// @param parent The head.
    function postL1Header(BatchHeader calldata parent) external returns (bytes32 headerHash) {
        if (parent.hash() != headHash) revert WrongParent(head.number, headHash, parent.hash());
        uint64 number = parent.number + 1;
        bool last = registry.endDue(number);
        bool undecided = last || requireL1HeaderDue(number);
        if (block.timestamp <= parent.timestampMs / 1_000) revert SecondNotOver(parent.timestampMs / 1_000);

        BatchHeader memory header = parent;
        header.number = number;
        header.parentHash = headHash;
        header.timestampMs = uint64(block.timestamp) * 1_000;
        header.epoch = registry.servingEpoch(number);
        header.rules = registry.rulesOf(number);
        header.dataHash = 0; // the queue has the items' hashes, not their bytes
        takeDueItems(header);
        bool useful = header.envelopeCount != 0 || parent.envelopeCount != 0 || undecided
            || block.number > uint256(headPostedAt) + postingDeadline;
        if (!useful) revert NothingToInclude();

        headerHash = header.hashMade();
        l1Made.push(L1Made({ number: number, madeAt: uint64(block.number) }));
        emit L1Header(number, headerHash, header);
        append(
            number,
            Head({
                number: number,
                timestampMs: header.timestampMs,
                l1OriginNumber: header.l1OriginNumber,
                forcedCursor: header.forcedCursor
            }),
            headerHash,
            MerkleTree.leaf(headerHash)
        );
        if (last) registry.endEpochAt(number);
    }

    /// @dev Readers decode this call from the transaction's input. The compiler takes an offset inside the certificate for
    /// signed, so that its bytes could stand in front of it; decoders elsewhere refuse that, and could not go on.
    function requireCanonical(Certificate calldata certificate) private pure {
        uint256 offset;
        assembly ("memory-safe") {
            offset := calldataload(add(certificate, 0x20))
        }
        if (offset != 0x40) revert NotCanonical();
    }

    /// @dev How many headers in front are posted already, going by the first one's number. They are not looked at: for
    /// nodes they only say where the data of each number lies. When all are, the last must be of the number that follows
    /// from the first one's, and the head itself if it is of the head's number.
    function passOver(BatchHeader[] calldata headers) private returns (uint256 count) {
        uint64 first = headers[0].number;
        uint64 posted = head.number;
        if (first == 0 || first > posted) return 0;
        count = uint256(posted) - first + 1;
        if (count >= headers.length) {
            count = headers.length;
            BatchHeader calldata last = headers[count - 1];
            bool other = last.number == posted && last.hash() != headHash;
            if (other || last.number != first + count - 1) revert WrongNumber(posted + 1, last.number);
        }
        emit PostedAgain(first, first + uint64(count) - 1, msg.sender, blobHashes());
    }

    /// @dev Checks that the headers follow the head and each other; the last one's hash, and the leaves over all
    /// hashes, with those that are missing up to a power of two.
    function chain(BatchHeader[] calldata headers, uint64 epoch, uint16 rules)
        private
        view
        returns (bytes32 parent, bytes32[] memory leaves)
    {
        Head memory previous = head;
        parent = headHash;
        QueueView memory seen = QueueView({ length: queue.length(), index: type(uint64).max, enqueuedAt: 0 });
        leaves = new bytes32[](MerkleTree.width(headers.length));
        for (uint256 i = 0; i < headers.length; i++) {
            BatchHeader calldata header = headers[i];
            uint64 number = header.number;
            if (header.version != BatchHeaders.VERSION) revert UnsupportedVersion(header.version);
            if (number != previous.number + 1) revert WrongNumber(previous.number + 1, number);
            requireClean(header);
            if (header.parentHash != parent) revert WrongParent(number, parent, header.parentHash);
            if (header.timestampMs <= previous.timestampMs) revert TimeNotIncreasing(number);
            if (header.l1OriginNumber < previous.l1OriginNumber) revert OriginDecreasing(number);
            if (header.timestampMs / 1_000 > uint256(header.l1OriginTime) + maxOriginAgeSeconds) {
                revert OriginHeldBack(number);
            }
            if (header.epoch != epoch) revert RunCrossesEpoch(number);
            if (header.rules != rules) revert WrongRules(number, rules);
            requireForcedItems(header, previous.forcedCursor, seen);
            previous.number = number;
            previous.timestampMs = header.timestampMs;
            previous.l1OriginNumber = header.l1OriginNumber;
            previous.forcedCursor = header.forcedCursor;
            parent = header.hash();
            leaves[i] = MerkleTree.leaf(parent);
        }
    }

    /// @dev The fields that nothing here reads keep within their types. The hash is over the input as it is, and who takes
    /// such a header as the head's later, to make one behind it or to prove an account, could not even decode it.
    function requireClean(BatchHeader calldata header) private pure {
        uint256 dirty;
        assembly ("memory-safe") {
            dirty := or(shr(32, calldataload(add(header, 320))), shr(64, calldataload(add(header, 352))))
            dirty := or(dirty, shr(128, calldataload(add(header, 384))))
            dirty := or(dirty, shr(128, calldataload(add(header, 416))))
        }
        if (dirty != 0) revert NotCanonical();
    }

    /// @dev Appends checked headers as the fewest runs whose hints fit a transaction each.
    function appendRuns(BatchHeader[] calldata headers, bytes32 newHash, bytes32[] memory leaves) private {
        uint256 from = 0;
        uint256 size = HintData.HEAD_BYTES;
        for (uint256 i = 0; i < headers.length; i++) {
            BatchHeader calldata header = headers[i];
            uint256 added = HintData.mostBytes(header.envelopeCount);
            if (i > from && size + added > MAX_RUN_HINT_BYTES) {
                bytes32 root = MerkleTree.rootInPlace(MerkleTree.slice(leaves, from, i));
                remember(headers[from].number, header.number - 1, header.parentHash, root);
                from = i;
                size = HintData.HEAD_BYTES;
            }
            size += added;
        }
        if (from != 0) leaves = MerkleTree.slice(leaves, from, headers.length);
        BatchHeader calldata last = headers[headers.length - 1];
        append(headers[from].number, asHead(last), newHash, MerkleTree.rootInPlace(leaves));
    }

    /// @dev The header takes entries that exist, not too many, and leaves out none that is due, unless it is full.
    /// Rule FI-1.
    function requireForcedItems(BatchHeader calldata header, uint64 from, QueueView memory seen)
        private
        view
    {
        uint64 cursor = header.forcedCursor;
        if (cursor < from) revert ForcedCursorDecreasing(header.number);
        uint64 taken = cursor - from;
        if (taken > MAX_FORCED_ITEMS) revert ForcedCapExceeded(header.number, taken);
        if (cursor > seen.length) revert ForcedCursorAhead(cursor, seen.length);
        if (cursor == seen.length || taken == MAX_FORCED_ITEMS) return;
        if (cursor != seen.index) {
            seen.index = cursor;
            seen.enqueuedAt = queue.enqueuedAt(cursor);
        }
        if (uint256(seen.enqueuedAt) + forcedDelay <= header.l1OriginNumber) {
            revert ForcedItemIgnored(header.number, cursor);
        }
    }

    /// @dev A run may not come later than `postingDeadline` after its first origin; after a header that L1 made, its
    /// origin shows that header. So what was signed without knowing of it can never follow it. What follows later keeps to
    /// that origin (`OriginDecreasing`), and no certified header and one of L1's stand in the same block: L1 makes none on
    /// any ground in the block of a certified posting, and behind its own the origin would not be an earlier block.
    /// Rules L-10 and O-6.
    function requireFreshOrigin(uint64 origin) private view {
        if (uint256(origin) + postingDeadline < block.number) {
            revert OriginTooOld(origin, block.number - postingDeadline);
        }
        if (headPostedAt > lastCertifiedAt && origin < headPostedAt) {
            revert OriginTooOld(origin, headPostedAt);
        }
    }

    /// @dev Whether L1 may make the next header because two of its number were shown; reverts when it may not at all.
    function requireL1HeaderDue(uint64 number) private view returns (bool undecided) {
        uint256 shownAt = equivocatedAt[number];
        if (shownAt != 0) {
            // From the head's posting on the committee has had the time to certify one of the two, and anyone to
            // post it: an old showing alone does not do.
            uint256 until = (shownAt > headPostedAt ? shownAt : headPostedAt) + answerWindow;
            if (block.number > until) return true;
        }
        uint256 since = waitingSince();
        uint256 from = since + postingDeadline + 1;
        if (block.number < from) revert L1HeaderNotDue(from);
        if (lastCertifiedAt < from) {
            uint256 windows = (block.number - from) / answerWindow;
            if (windows % 2 != 0) revert L1HeaderNotDue(from + (windows + 1) * answerWindow);
        }
        // Under (c) a committee that posts has time for its next posting, and no window beyond it: else old items would
        // knock out one that is back, and one posting a window would hold them up.
        uint256 pause = uint256(lastCertifiedAt) + forcedDelay;
        if (since != lastCertifiedAt && block.number <= pause) revert L1HeaderNotDue(pause + 1);
        return false;
    }

    /// @dev The L1 block of the last certified posting, or the one from which on the next forced item was due, if that is
    /// earlier. `postingDeadline` later no header with an origin before it can be posted, and any other takes the item.
    function waitingSince() private view returns (uint256 since) {
        since = lastCertifiedAt;
        uint256 enqueuedAt = queue.enqueuedAt(head.forcedCursor); // 0 for none
        if (enqueuedAt != 0 && enqueuedAt + forcedDelay < since) since = enqueuedAt + forcedDelay;
    }

    /// @dev Puts the queue's next entries that are due now, at most `MAX_FORCED_ITEMS`, into the header, which comes
    /// with its parent's cursor.
    function takeDueItems(BatchHeader memory header) private view {
        uint64 cursor = header.forcedCursor;
        uint64 length = queue.length();
        uint32 count = 0;
        uint32 size = 0;
        uint64 gas = 0;
        bytes32[] memory leaves = new bytes32[](MAX_FORCED_ITEMS);
        while (count < MAX_FORCED_ITEMS && cursor < length) {
            ForcedEntry memory item = queue.entry(cursor);
            if (uint256(item.enqueuedAt) + forcedDelay > block.number) break;
            uint8 code = item.kind == 0 ? EnvelopeTree.VOID : EnvelopeTree.FORCED_TRANSACTION;
            leaves[count] = EnvelopeTree.leaf(bytes32(0), item.itemHash, code);
            size += item.length;
            gas += item.gasLimit;
            count++;
            cursor++;
        }
        uint256 width = MerkleTree.width(count);
        assembly ("memory-safe") {
            mstore(leaves, width) // not above MAX_FORCED_ITEMS, a power of two; the rest of the leaves are zero
        }
        header.envelopeRoot = MerkleTree.rootInPlace(leaves);
        header.envelopeCount = count;
        header.envelopeBytes = size;
        header.gas = gas;
        header.forcedCursor = cursor;
    }

    function asHead(BatchHeader calldata header) private pure returns (Head memory) {
        return Head({
            number: header.number,
            timestampMs: header.timestampMs,
            l1OriginNumber: header.l1OriginNumber,
            forcedCursor: header.forcedCursor
        });
    }

    /// @dev The versioned hashes of this transaction's blobs.
    function blobHashes() private view returns (bytes32[] memory hashes) {
        uint256 count = 0;
        while (blobhash(count) != 0) count++;
        hashes = new bytes32[](count);
        for (uint256 i = 0; i < count; i++) {
            hashes[i] = blobhash(i);
        }
    }
}
