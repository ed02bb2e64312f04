// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { RegistrySettings } from "../src/interfaces/ICommitteeRegistry.sol";
import { IEncryptionKeyVerifier } from "../src/interfaces/IEncryptionKeyVerifier.sol";
import { IMemberStakes } from "../src/interfaces/IMemberStakes.sol";
import { BatchHeader, BatchHeaders } from "../src/libraries/BatchHeaders.sol";
import { Bls12381 } from "../src/libraries/Bls12381.sol";
import { Domain } from "../src/libraries/Domain.sol";
import { EnvelopeTree } from "../src/libraries/EnvelopeTree.sol";
import { FeeLedger } from "../src/libraries/FeeLedger.sol";
import { MerkleTree } from "../src/libraries/MerkleTree.sol";
import { Promises } from "../src/libraries/Promises.sol";
import { Secp256k1 } from "../src/libraries/Secp256k1.sol";
import { LedgerTrees } from "./helpers/LedgerTrees.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Calldata doors to the libraries.
contract LibraryCaller {
    function hash(BatchHeader calldata header) external pure returns (bytes32) {
        return BatchHeaders.hash(header);
    }

    function recover(bytes32 digest, bytes calldata signature) external pure returns (address) {
        return Secp256k1.recover(digest, signature);
    }

    function compress(bytes calldata key) external pure returns (bytes memory) {
        return Bls12381.compress(key);
    }

    function pack(bytes calldata key) external pure returns (bytes memory) {
        return Bls12381.pack(key);
    }

    function verify(bytes32 root, uint256 count, uint256 index, bytes32 leaf, bytes32[] calldata proof)
        external
        pure
        returns (bool)
    {
        return MerkleTree.verify(root, count, index, leaf, proof);
    }

    function verifyAccount(
        bytes32 root,
        address payer,
        uint128 balance,
        uint128 withdrawn,
        bytes32[] calldata siblings
    ) external pure returns (bool) {
        return FeeLedger.verify(root, payer, balance, withdrawn, siblings);
    }
}

/// @notice The golden vectors that the Rust side writes and reads: both sides agree on every hash and signature.
contract VectorsTest is Test {
    string internal constant FOLDER = "../testing/vectors/protocol/";
    LibraryCaller internal caller = new LibraryCaller();

    function path(string memory list, uint256 index) internal pure returns (string memory) {
        return string.concat(".", list, "[", vm.toString(index), "]");
    }

    function headerAt(string memory json, string memory here)
        internal
        pure
        returns (BatchHeader memory header)
    {
        header.version = uint8(vm.parseJsonUint(json, string.concat(here, ".version")));
        header.number = uint64(vm.parseJsonUint(json, string.concat(here, ".number")));
        header.parentHash = vm.parseJsonBytes32(json, string.concat(here, ".parentHash"));
        header.timestampMs = uint64(vm.parseJsonUint(json, string.concat(here, ".timestampMs")));
        header.l1OriginNumber = uint64(vm.parseJsonUint(json, string.concat(here, ".l1OriginNumber")));
        header.l1OriginHash = vm.parseJsonBytes32(json, string.concat(here, ".l1OriginHash"));
        header.l1OriginTime = uint64(vm.parseJsonUint(json, string.concat(here, ".l1OriginTime")));
        header.envelopeRoot = vm.parseJsonBytes32(json, string.concat(here, ".envelopeRoot"));
        header.dataHash = vm.parseJsonBytes32(json, string.concat(here, ".dataHash"));
        header.envelopeCount = uint32(vm.parseJsonUint(json, string.concat(here, ".envelopeCount")));
        header.envelopeBytes = uint32(vm.parseJsonUint(json, string.concat(here, ".envelopeBytes")));
        header.gas = uint64(vm.parseJsonUint(json, string.concat(here, ".gas")));
        header.baseFee = uint128(vm.parseJsonUint(json, string.concat(here, ".baseFee")));
        header.gasBaseFee = uint128(vm.parseJsonUint(json, string.concat(here, ".gasBaseFee")));
        header.feeLedgerRoot = vm.parseJsonBytes32(json, string.concat(here, ".feeLedgerRoot"));
        header.forcedCursor = uint64(vm.parseJsonUint(json, string.concat(here, ".forcedCursor")));
        header.epoch = uint64(vm.parseJsonUint(json, string.concat(here, ".epoch")));
        header.rules = uint16(vm.parseJsonUint(json, string.concat(here, ".rules")));
    }

    function checkDomain(string memory json) internal pure returns (bytes32 separator) {
        separator = Domain.separator(
            vm.parseJsonUint(json, ".domain.chainId"), vm.parseJsonAddress(json, ".domain.verifyingContract")
        );
        checkEqual(separator, vm.parseJsonBytes32(json, ".domain.separator"), "separator");
        checkEqual(
            Domain.genesisHash(separator), vm.parseJsonBytes32(json, ".domain.genesisHash"), "genesis hash"
        );
    }

    function checkHeaders(string memory json, bytes32 separator, string memory list)
        internal
        view
        returns (uint256 count)
    {
        address sequencer = vm.parseJsonAddress(json, ".sequencer");
        for (; vm.keyExistsJson(json, path(list, count)); count++) {
            string memory here = path(list, count);
            bytes32 hash = caller.hash(headerAt(json, here));
            checkEqual(hash, vm.parseJsonBytes32(json, string.concat(here, ".hash")), "header hash");
            bytes32 digest = Domain.digest(separator, hash);
            checkEqual(digest, vm.parseJsonBytes32(json, string.concat(here, ".digest")), "digest");
            bytes memory signature = vm.parseJsonBytes(json, string.concat(here, ".signature"));
            checkEqual(caller.recover(digest, signature), sequencer, "signer");
        }
    }

    function testHeaders() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "headers.json"));
        bytes32 separator = checkDomain(json);
        check(checkHeaders(json, separator, "headers") >= 3, "headers");
        checkEqual(checkHeaders(json, separator, "equivocation"), 2, "equivocation");
    }

    function testPromises() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "headers.json"));
        bytes32 separator = checkDomain(json);
        address sequencer = vm.parseJsonAddress(json, ".sequencer");
        uint256 count = 0;
        for (; vm.keyExistsJson(json, path("promises", count)); count++) {
            string memory here = path("promises", count);
            bytes32 id = vm.parseJsonBytes32(json, string.concat(here, ".envelopeId"));
            bytes32 itemHash = vm.parseJsonBytes32(json, string.concat(here, ".itemHash"));
            uint64 sealBy = uint64(vm.parseJsonUint(json, string.concat(here, ".sealBy")));
            bytes32 digest = Domain.digest(separator, Promises.hash(id, itemHash, sealBy));
            checkEqual(digest, vm.parseJsonBytes32(json, string.concat(here, ".digest")), "digest");
            bytes memory signature = vm.parseJsonBytes(json, string.concat(here, ".signature"));
            checkEqual(caller.recover(digest, signature), sequencer, "signer");
        }
        check(count >= 1, "promises");
    }

    function testMerkleTrees() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "merkle.json"));
        uint256 trees = 0;
        for (; vm.keyExistsJson(json, path("merkle", trees)); trees++) {
            string memory here = path("merkle", trees);
            uint256 count = vm.parseJsonUint(json, string.concat(here, ".count"));
            bytes32 root = vm.parseJsonBytes32(json, string.concat(here, ".root"));
            bytes32[] memory leaves = new bytes32[](MerkleTree.width(count));
            for (uint256 i = 0; i < count; i++) {
                leaves[i] = vm.parseJsonBytes32(json, string.concat(here, path("leaves", i)));
                checkLeaf(vm.parseJsonBytes(json, string.concat(here, path("data", i))), leaves[i]);
                checkProof(json, string.concat(here, path("proofs", i)), root, count, leaves[i]);
            }
            checkEqual(MerkleTree.rootInPlace(leaves), root, "root");
        }
        check(trees >= 3, "trees");
    }

    /// @dev Data of 65 bytes are an item's: id, hash, code.
    function checkLeaf(bytes memory data, bytes32 leaf) internal pure {
        checkEqual(keccak256(bytes.concat(hex"00", data)), leaf, "leaf");
        if (data.length != 65) return;
        bytes32 id;
        bytes32 itemHash;
        assembly ("memory-safe") {
            id := mload(add(data, 0x20))
            itemHash := mload(add(data, 0x40))
        }
        checkEqual(EnvelopeTree.leaf(id, itemHash, uint8(data[64])), leaf, "item");
    }

    function checkProof(string memory json, string memory here, bytes32 root, uint256 count, bytes32 leaf)
        internal
        view
    {
        uint256 index = vm.parseJsonUint(json, string.concat(here, ".index"));
        uint256 depth = 0;
        while (vm.keyExistsJson(json, string.concat(here, path("siblings", depth)))) depth++;
        bytes32[] memory proof = new bytes32[](depth);
        for (uint256 i = 0; i < depth; i++) {
            proof[i] = vm.parseJsonBytes32(json, string.concat(here, path("siblings", i)));
        }
        check(caller.verify(root, count, index, leaf, proof), "proof");
        check(!caller.verify(root, count, index + count, leaf, proof), "index beyond the count");
    }

    function testEnvelopeLeaves() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "envelopes.json"));
        uint256 count = 0;
        for (; vm.keyExistsJson(json, path("envelopes", count)); count++) {
            string memory here = path("envelopes", count);
            bytes32 itemHash = keccak256(vm.parseJsonBytes(json, string.concat(here, ".encoded")));
            checkEqual(itemHash, vm.parseJsonBytes32(json, string.concat(here, ".itemHash")), "item hash");
            bytes32 leaf = EnvelopeTree.leaf(
                vm.parseJsonBytes32(json, string.concat(here, ".id")),
                itemHash,
                uint8(vm.parseJsonUint(json, string.concat(here, ".code")))
            );
            checkEqual(leaf, vm.parseJsonBytes32(json, string.concat(here, ".leaf")), "leaf");
        }
        check(count >= 2, "envelopes");
    }

    function testLedgers() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "ledgers.json"));
        uint256 entries = 0;
        for (uint256 i = 0; vm.keyExistsJson(json, path("ledgers", i)); i++) {
            string memory ledger = path("ledgers", i);
            bytes32 root = vm.parseJsonBytes32(json, string.concat(ledger, ".feeLedgerRoot"));
            bytes32[] memory keys = new bytes32[](256);
            bytes32[] memory leaves = new bytes32[](256);
            uint256 count = 0;
            for (uint256 j = 0; vm.keyExistsJson(json, string.concat(ledger, path("accounts", j))); j++) {
                (keys[count], leaves[count]) = account(json, string.concat(ledger, path("accounts", j)), root);
                count++;
            }
            for (uint256 j = 0; vm.keyExistsJson(json, string.concat(ledger, path("nonces", j))); j++) {
                (keys[count], leaves[count]) = liveNonce(json, string.concat(ledger, path("nonces", j)));
                count++;
            }
            assembly ("memory-safe") {
                mstore(keys, count)
                mstore(leaves, count)
            }
            checkEqual(LedgerTrees.root(keys, leaves), root, "root");
            entries += count;
        }
        check(entries >= 90, "entries");
    }

    function account(string memory json, string memory here, bytes32 root)
        internal
        view
        returns (bytes32 key, bytes32 leaf)
    {
        address payer = vm.parseJsonAddress(json, string.concat(here, ".payer"));
        uint128 balance = uint128(vm.parseJsonUint(json, string.concat(here, ".balance")));
        uint128 withdrawn = uint128(vm.parseJsonUint(json, string.concat(here, ".withdrawn")));
        bytes32[] memory siblings = vm.parseJsonBytes32Array(json, string.concat(here, ".siblings"));
        check(caller.verifyAccount(root, payer, balance, withdrawn, siblings), "proof");
        check(!caller.verifyAccount(root, payer, balance, withdrawn ^ 1, siblings), "another account");
        key = FeeLedger.accountKey(payer);
        leaf = FeeLedger.accountLeaf(key, balance, withdrawn);
        checkEqual(key, vm.parseJsonBytes32(json, string.concat(here, ".key")), "key");
        checkEqual(leaf, vm.parseJsonBytes32(json, string.concat(here, ".leaf")), "leaf");
    }

    function liveNonce(string memory json, string memory here)
        internal
        pure
        returns (bytes32 key, bytes32 leaf)
    {
        address payer = vm.parseJsonAddress(json, string.concat(here, ".payer"));
        uint64 nonce = uint64(vm.parseJsonUint(json, string.concat(here, ".feeNonce")));
        uint64 expiry = uint64(vm.parseJsonUint(json, string.concat(here, ".expiry")));
        key = keccak256(abi.encodePacked(hex"01", payer, nonce));
        leaf = keccak256(abi.encodePacked(hex"00", key, expiry));
        checkEqual(key, vm.parseJsonBytes32(json, string.concat(here, ".key")), "key");
        checkEqual(leaf, vm.parseJsonBytes32(json, string.concat(here, ".leaf")), "leaf");
    }

    function testForcedItems() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "forced.json"));
        bytes32 separator = checkDomain(json);
        checkEqual(checkHeaders(json, separator, "sealed"), 1, "sealed");
        checkEqual(checkHeaders(json, separator, "l1"), 2, "made by L1");
        checkForced(json, "sealedLeaves", headerAt(json, path("sealed", 0)));
        BatchHeader memory made = headerAt(json, path("l1", 0));
        checkForced(json, "l1Leaves", made);
        checkEqual(headerAt(json, path("l1", 1)).envelopeRoot, bytes32(0), "root of an empty one");
    }

    function checkForced(string memory json, string memory list, BatchHeader memory header) internal pure {
        bytes32[] memory leaves = new bytes32[](MerkleTree.width(header.envelopeCount));
        uint256 size = 0;
        for (uint256 i = 0; i < header.envelopeCount; i++) {
            string memory entry = path("entries", i);
            bytes memory item = vm.parseJsonBytes(json, string.concat(entry, ".item"));
            size += item.length;
            bytes32 itemHash = keccak256(item);
            checkEqual(itemHash, vm.parseJsonBytes32(json, string.concat(entry, ".itemHash")), "item hash");
            bool transaction = vm.parseJsonUint(json, string.concat(entry, ".kind")) == 1;
            check(item[0] == (transaction ? bytes1(0xff) : bytes1(0x02)), "first byte");
            string memory here = path(list, i);
            uint8 code = uint8(vm.parseJsonUint(json, string.concat(here, ".code")));
            check((code == EnvelopeTree.FORCED_TRANSACTION) == transaction, "code");
            leaves[i] =
                EnvelopeTree.leaf(vm.parseJsonBytes32(json, string.concat(here, ".id")), itemHash, code);
            checkEqual(leaves[i], vm.parseJsonBytes32(json, string.concat(here, ".leaf")), "leaf");
        }
        checkEqual(size, header.envelopeBytes, "bytes");
        checkEqual(MerkleTree.rootInPlace(leaves), header.envelopeRoot, "root");
        checkEqual(header.forcedCursor, header.envelopeCount, "cursor");
    }

    function testCertificates() public {
        string memory json = vm.readFile(string.concat(FOLDER, "certificates.json"));
        checkDomain(json);
        checkEqual(vm.parseJsonUint(json, ".domain.chainId"), block.chainid, "chain id");
        CommitteeRegistry registry = new CommitteeRegistry(
            address(1),
            vm.parseJsonAddress(json, ".domain.verifyingContract"),
            address(1),
            IEncryptionKeyVerifier(address(0)),
            IMemberStakes(address(0)),
            RegistrySettings({ epochNotice: 1, switchLead: 1, minMembers: 1, minThreshold: 1 })
        );

        bytes memory packed;
        uint256 members = 0;
        for (; vm.keyExistsJson(json, path("members", members)); members++) {
            string memory here = path("members", members);
            bytes memory key = vm.parseJsonBytes(json, string.concat(here, ".publicKeyEip2537"));
            bytes memory compressed = vm.parseJsonBytes(json, string.concat(here, ".publicKey"));
            bytes memory possession = vm.parseJsonBytes(json, string.concat(here, ".possessionEip2537"));
            checkEqual(caller.compress(key), compressed, "compressed key");
            check(Bls12381.verify(key, Bls12381.POSSESSION_TAG, compressed, possession), "possession");
            packed = bytes.concat(packed, caller.pack(key));
        }
        check(members >= 2, "members");

        uint256 count = 0;
        for (; vm.keyExistsJson(json, path("certificates", count)); count++) {
            string memory here = path("certificates", count);
            bytes32 digest = registry.acknowledgementDigest(
                uint64(vm.parseJsonUint(json, string.concat(here, ".epoch"))),
                uint64(vm.parseJsonUint(json, string.concat(here, ".number"))),
                vm.parseJsonBytes32(json, string.concat(here, ".headerHash"))
            );
            checkEqual(digest, vm.parseJsonBytes32(json, string.concat(here, ".digest")), "digest");
            bytes memory key = Bls12381.sum(packed, vm.parseJsonUint(json, string.concat(here, ".signers")));
            bytes memory signature = vm.parseJsonBytes(json, string.concat(here, ".signatureEip2537"));
            check(
                Bls12381.verify(key, Bls12381.SIGNATURE_TAG, abi.encodePacked(digest), signature),
                "aggregate signature"
            );
        }
        check(count >= 1, "certificates");
    }
}
