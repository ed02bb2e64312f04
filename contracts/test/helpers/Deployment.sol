// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../../src/BlindedInbox.sol";
import { CommitteeRegistry } from "../../src/CommitteeRegistry.sol";
import { FaultRecords } from "../../src/FaultRecords.sol";
import { ForcedQueue } from "../../src/ForcedQueue.sol";
import { IBlindedInbox, RunReference, Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { RegistrySettings } from "../../src/interfaces/ICommitteeRegistry.sol";
import { IEncryptionKeyVerifier } from "../../src/interfaces/IEncryptionKeyVerifier.sol";
import { IMemberStakes } from "../../src/interfaces/IMemberStakes.sol";
import { ForcedEntry } from "../../src/interfaces/IForcedQueue.sol";
import { BatchHeader } from "../../src/libraries/BatchHeaders.sol";
import { Bls12381 } from "../../src/libraries/Bls12381.sol";
import { Domain } from "../../src/libraries/Domain.sol";
import { EnvelopeTree } from "../../src/libraries/EnvelopeTree.sol";
import { BlsSigner } from "./BlsSigner.sol";
import { MerkleProofs } from "./MerkleProofs.sol";
import { Test } from "./Test.sol";

/// @dev Takes every key but those that begin with 0xff.
contract AnyKeyVerifier is IEncryptionKeyVerifier {
    function isEncryptionKey(bytes calldata encoded) external pure returns (bool) {
        return encoded[0] != 0xff;
    }
}

/// @notice A registry, a forced queue and an inbox with known keys, and headers, certificates and evidence for them.
abstract contract Deployment is Test {
    uint256 internal constant SEQUENCER_KEY = 0x5e9;
    address internal constant GOVERNOR = address(0x60);
    address internal constant POSTER = address(0x9057e4);
    address internal constant FORCER = address(0xf02ce);
    uint64 internal constant EPOCH_LAST = 1_000_000;
    uint128 internal constant FEE_PER_BYTE = 100 gwei;
    uint64 internal constant MIN_GAS_PRICE = 0.01 gwei;
    uint256 internal constant STAKE = 0.1 ether;
    uint256 internal constant ENVELOPE_GAS_OFFSET = 153;

    /// @dev The L1 block of the deployment, and how far behind a block is final.
    uint64 internal constant START_BLOCK = 1_000_000;
    uint64 internal constant FINALITY = 64;

    uint32 internal constant POSTING_DEADLINE = 14_400;
    uint32 internal constant FORCED_DELAY = 300;
    uint32 internal constant ANSWER_WINDOW = 7_200;
    uint32 internal constant WITHDRAWAL_DELAY = 36_000;
    uint32 internal constant CLAIM_DELAY = 7_200;
    uint32 internal constant EPOCH_NOTICE = 50_400;
    uint64 internal constant SWITCH_LEAD = 1_000;
    uint32 internal constant MAX_ORIGIN_AGE_SECONDS = 14_400;

    /// @dev Takes any key, so that tests can be quick.
    IEncryptionKeyVerifier internal anyKey;
    CommitteeRegistry internal registry;
    ForcedQueue internal queue;
    BlindedInbox internal inbox;

    function defaultTiming() internal pure returns (Timing memory) {
        return Timing({
            postingDeadline: POSTING_DEADLINE,
            forcedDelay: FORCED_DELAY,
            answerWindow: ANSWER_WINDOW,
            hintDeadline: 3_600,
            challengeWindow: 7_200,
            withdrawalDelay: WITHDRAWAL_DELAY,
            maxOriginAgeSeconds: MAX_ORIGIN_AGE_SECONDS
        });
    }

    /// @dev Of the fewest members one, so that tests can be quick.
    function defaultSettings() internal pure returns (RegistrySettings memory) {
        return RegistrySettings({
            epochNotice: EPOCH_NOTICE, switchLead: SWITCH_LEAD, minMembers: 1, minThreshold: 1
        });
    }

    /// @dev What members have at stake: nothing, unless a test says otherwise.
    function memberStakes() internal view virtual returns (IMemberStakes) {
        return IMemberStakes(address(0));
    }

    /// @dev A registry of the governor and sequencer of all tests.
    function newRegistry(address inbox_, IEncryptionKeyVerifier verifier, RegistrySettings memory settings)
        internal
        returns (CommitteeRegistry)
    {
        return
            new CommitteeRegistry(
                GOVERNOR, inbox_, vm.addr(SEQUENCER_KEY), verifier, memberStakes(), settings
            );
    }

    function deployContracts() internal {
        if (block.number < START_BLOCK) vm.roll(START_BLOCK);
        anyKey = new AnyKeyVerifier();
        address inboxAddress = vm.computeCreateAddress(address(this), vm.getNonce(address(this)) + 2);
        registry = newRegistry(inboxAddress, anyKey, defaultSettings());
        queue = new ForcedQueue(IBlindedInbox(inboxAddress), registry, FEE_PER_BYTE, MIN_GAS_PRICE);
        inbox = new BlindedInbox(registry, queue, defaultTiming());
    }

    /// @dev Lets L1 go on by `blocks` of 12 s.
    function pass(uint256 blocks) internal {
        vm.roll(block.number + blocks);
        vm.warp(block.timestamp + 12 * blocks);
    }

    /// @dev Secret of member `member` (from 1) of every test committee.
    function memberSecret(uint256 member) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("member", member))) % BlsSigner.ORDER;
    }

    function committee(uint256 size) internal view returns (CommitteeRegistry.Member[] memory members) {
        members = new CommitteeRegistry.Member[](size);
        for (uint256 i = 0; i < size; i++) {
            uint256 secret = memberSecret(i + 1);
            members[i] = CommitteeRegistry.Member({
                key: BlsSigner.key(secret), possession: BlsSigner.possession(secret)
            });
        }
    }

    function parameters(uint64 lastNumber, uint16 threshold)
        internal
        pure
        returns (CommitteeRegistry.EpochParameters memory)
    {
        bytes memory encryptionKey = new bytes(576);
        for (uint256 i = 0; i < encryptionKey.length; i++) {
            encryptionKey[i] = bytes1(uint8(i * 7 + 1));
        }
        return CommitteeRegistry.EpochParameters({
            lastNumber: lastNumber,
            maxBatch: 512,
            threshold: threshold,
            parametersHash: keccak256("parameters"),
            continues: 0,
            encryptionKey: encryptionKey,
            h1: BlsSigner.G2_GENERATOR,
            parametersLocation: "https://example.org/parameters"
        });
    }

    function registerEpoch(uint64 lastNumber, uint256 size, uint16 threshold) internal {
        CommitteeRegistry.Member[] memory members = committee(size);
        vm.prank(GOVERNOR);
        registry.registerEpoch(parameters(lastNumber, threshold), members);
    }

    /// @dev The aggregate signature of the members whose bits are set.
    function aggregate(uint64 epoch, uint64 number, bytes32 headerHash, uint64 signers)
        internal
        view
        returns (bytes memory)
    {
        uint256 secret = 0;
        for (uint256 i = 0; i < 64; i++) {
            if ((signers >> i) & 1 == 1) secret = addmod(secret, memberSecret(i + 1), BlsSigner.ORDER);
        }
        bytes32 digest = registry.acknowledgementDigest(epoch, number, headerHash);
        return BlsSigner.sign(secret, Bls12381.SIGNATURE_TAG, abi.encodePacked(digest));
    }

    function certificate(BatchHeader memory header, uint64 signers)
        internal
        view
        returns (BlindedInbox.Certificate memory)
    {
        bytes32 headerHash = inbox.hashHeader(header);
        return BlindedInbox.Certificate({
            signers: signers, signature: aggregate(header.epoch, header.number, headerHash, signers)
        });
    }

    /// @dev `count` headers that follow the inbox's head; each takes the forced items that are due at its origin.
    function run(uint256 count) internal view returns (BatchHeader[] memory headers) {
        headers = new BatchHeader[](count);
        (uint64 number, uint64 timestampMs, uint64 origin, uint64 cursor) = inbox.head();
        if (timestampMs < block.timestamp * 1_000) timestampMs = uint64(block.timestamp * 1_000);
        if (origin + FINALITY < block.number) origin = uint64(block.number) - FINALITY;
        for (uint256 i = 0; i < count; i++) {
            number++;
            timestampMs += 250;
            origin += uint64(i % 2);
            cursor = dueCursor(cursor, origin);
            headers[i] = BatchHeader({
                version: 2,
                number: number,
                parentHash: 0,
                timestampMs: timestampMs,
                l1OriginNumber: origin,
                l1OriginHash: keccak256(abi.encode("origin", origin)),
                l1OriginTime: timestampMs / 1_000,
                envelopeRoot: keccak256(abi.encode("envelopes", number)),
                dataHash: keccak256(abi.encode("data", number)),
                envelopeCount: 50,
                envelopeBytes: 31_100,
                gas: 8_000_000,
                baseFee: 1 gwei,
                gasBaseFee: 1 gwei,
                feeLedgerRoot: keccak256(abi.encode("ledger", number)),
                forcedCursor: cursor,
                epoch: 1,
                rules: 1
            });
        }
        relink(headers);
    }

    /// @dev Where a header's cursor must be at least when its parent's is `cursor`.
    function dueCursor(uint64 cursor, uint64 origin) internal view returns (uint64) {
        for (uint256 i = 0; i < 16; i++) {
            uint64 enqueuedAt = queue.enqueuedAt(cursor);
            if (enqueuedAt == 0 || enqueuedAt + FORCED_DELAY > origin) break;
            cursor++;
        }
        return cursor;
    }

    /// @dev The L1 block in which the first window for headers of L1's opens, unless something is posted before.
    function firstWindow() internal view returns (uint256 from) {
        (,,, uint64 cursor) = inbox.head();
        uint256 enqueuedAt = queue.enqueuedAt(cursor);
        from = inbox.lastCertifiedAt();
        if (enqueuedAt != 0 && enqueuedAt + FORCED_DELAY < from) from = enqueuedAt + FORCED_DELAY;
        from += POSTING_DEADLINE + 1;
    }

    /// @dev Chains changed headers anew.
    function relink(BatchHeader[] memory headers) internal view {
        bytes32 parent = inbox.headHash();
        for (uint256 i = 0; i < headers.length; i++) {
            headers[i].parentHash = parent;
            parent = inbox.hashHeader(headers[i]);
        }
    }

    function post(BatchHeader[] memory headers, BlindedInbox.Certificate memory certificate_) internal {
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", certificate_);
    }

    /// @dev Posts the headers, signed by the first three members; how they are referred to.
    function postRun(BatchHeader[] memory headers) internal returns (RunReference memory) {
        post(headers, certificate(headers[headers.length - 1], 0x7));
        return runReference(headers);
    }

    /// @dev The inbox refuses the headers although three members signed.
    function expectPostRefusal(BatchHeader[] memory headers, bytes memory reason) internal {
        BlindedInbox.Certificate memory c = certificate(headers[headers.length - 1], 0x7);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.post(headers, "", c);
    }

    /// @dev The run as it is posted in this block.
    function runReference(BatchHeader[] memory headers) internal view returns (RunReference memory) {
        (bytes32 root,) = proveHeader(headers, 0);
        return RunReference({
            first: headers[0].number,
            last: headers[headers.length - 1].number,
            postedAt: uint64(block.number),
            headerRoot: root
        });
    }

    /// @dev The tree over a run's header hashes and the proof of one.
    function proveHeader(BatchHeader[] memory headers, uint256 index)
        internal
        view
        returns (bytes32 root, bytes32[] memory proof)
    {
        bytes32[] memory leaves = new bytes32[](headers.length);
        for (uint256 i = 0; i < headers.length; i++) {
            leaves[i] = keccak256(bytes.concat(hex"00", inbox.hashHeader(headers[i])));
        }
        return MerkleProofs.prove(leaves, index);
    }

    /// @dev The header that L1 must make now after `parent`, with the items that are due.
    function l1Header(BatchHeader memory parent) internal view returns (BatchHeader memory header) {
        header = abi.decode(abi.encode(parent), (BatchHeader));
        uint64 from = parent.forcedCursor;
        header.parentHash = inbox.hashHeader(parent);
        header.number = parent.number + 1;
        header.timestampMs = uint64(block.timestamp * 1_000);
        header.forcedCursor = dueCursor(from, uint64(block.number));
        header.envelopeCount = uint32(header.forcedCursor - from);
        header.envelopeBytes = 0;
        header.gas = 0;
        header.envelopeRoot = 0;
        header.dataHash = 0;
        if (header.envelopeCount == 0) return header;
        bytes32[] memory leaves = new bytes32[](header.envelopeCount);
        for (uint64 i = 0; i < leaves.length; i++) {
            ForcedEntry memory item = queue.entry(from + i);
            leaves[i] = EnvelopeTree.leaf(0, item.itemHash, item.kind == 1 ? 0xff : 0xfe);
            header.envelopeBytes += item.length;
            header.gas += item.gasLimit;
        }
        (header.envelopeRoot,) = MerkleProofs.prove(leaves, 0);
    }

    /// @dev Enqueues a transaction of `size` bytes.
    function forceTransaction(uint256 size, uint64 gasLimit) internal returns (uint64 index) {
        uint256 fee = queue.feeOf(gasLimit, size);
        vm.deal(FORCER, fee);
        vm.prank(FORCER);
        index = queue.force{ value: fee }(1, gasLimit, filled(size, 0x02));
    }

    /// @dev Enqueues an envelope of `size` bytes.
    function forceEnvelope(uint256 size) internal returns (uint64 index) {
        bytes memory item = filled(size, 0x02);
        uint256 fee = queue.feeOf(envelopeGas(item), size);
        vm.deal(FORCER, fee);
        vm.prank(FORCER);
        index = queue.force{ value: fee }(0, 0, item);
    }

    /// @dev `size` bytes that are not zero, the first one given; as an envelope it has a gas limit of 1,000,000.
    function filled(uint256 size, bytes1 first) internal pure returns (bytes memory item) {
        item = new bytes(size);
        for (uint256 i = 0; i < size; i++) {
            item[i] = bytes1(uint8(i % 255 + 1));
        }
        item[0] = first;
        bytes8 gas = bytes8(uint64(1_000_000));
        for (uint256 i = 0; first == 0x02 && size > 200 && i < 8; i++) {
            item[ENVELOPE_GAS_OFFSET + i] = gas[i];
        }
    }

    /// @dev The gas limit that an envelope's header names.
    function envelopeGas(bytes memory item) internal pure returns (uint64 gas) {
        for (uint256 i = 0; i < 8; i++) {
            gas = gas << 8 | uint8(item[ENVELOPE_GAS_OFFSET + i]);
        }
    }

    /// @dev The sequencer's signature over a header.
    function signHeader(uint256 key, BatchHeader memory header) internal view returns (bytes memory) {
        return signStruct(key, inbox.hashHeader(header));
    }

    /// @dev A signature over a promise.
    function signPromise(uint256 key, bytes32 envelopeId, bytes32 itemHash, uint64 sealBy)
        internal
        view
        returns (bytes memory)
    {
        return signStruct(key, hashPromise(envelopeId, itemHash, sealBy));
    }

    /// @dev A promise of the first sequencer, as it is accused, answered and slashed.
    function givenPromise(bytes32 envelopeId, bytes32 itemHash, uint64 sealBy)
        internal
        pure
        returns (FaultRecords.GivenPromise memory)
    {
        return FaultRecords.GivenPromise({
            sequencer: vm.addr(SEQUENCER_KEY), envelopeId: envelopeId, itemHash: itemHash, sealBy: sealBy
        });
    }

    /// @dev The id of that promise.
    function promiseId(bytes32 envelopeId, bytes32 itemHash, uint64 sealBy) internal pure returns (bytes32) {
        return keccak256(abi.encode(vm.addr(SEQUENCER_KEY), hashPromise(envelopeId, itemHash, sealBy)));
    }

    /// @dev What is signed as a promise, and names it in accusations.
    function hashPromise(bytes32 envelopeId, bytes32 itemHash, uint64 sealBy)
        internal
        pure
        returns (bytes32)
    {
        bytes32 typehash = keccak256(
            "Promise(uint8 version,bytes32 envelopeId,bytes32 itemHash,uint64 sealBy)"
        );
        return keccak256(abi.encode(typehash, uint8(2), envelopeId, itemHash, sealBy));
    }

    function signStruct(uint256 key, bytes32 structHash) private view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, Domain.digest(inbox.domainSeparator(), structHash));
        return abi.encodePacked(r, s, v);
    }

    /// @dev `sender` commits to the evidence; the next block begins.
    function commitTo(address sender, bytes32 evidence, bytes32 salt) internal {
        vm.prank(sender);
        inbox.commit(keccak256(abi.encode(sender, evidence, salt)));
        pass(1);
    }

    /// @dev What a report of two headers commits to.
    function conflictEvidence(BatchHeader memory first, BatchHeader memory second)
        internal
        view
        returns (bytes32)
    {
        bytes32 one = inbox.hashHeader(first);
        bytes32 two = inbox.hashHeader(second);
        (bytes32 low, bytes32 high) = one < two ? (one, two) : (two, one);
        return keccak256(abi.encode(first.number, low, high));
    }

    /// @dev What an accusation commits to.
    function omissionEvidence(bytes32 envelopeId, bytes32 itemHash, uint64 sealBy)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(envelopeId, itemHash, sealBy));
    }

    function depositBond(uint256 amount) internal {
        vm.deal(address(this), amount);
        inbox.depositBond{ value: amount }(vm.addr(SEQUENCER_KEY));
    }

    /// @dev What the first sequencer's bond shows.
    function bond() internal view returns (uint256) {
        return inbox.bondOf(vm.addr(SEQUENCER_KEY));
    }
}
