// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox, ICommitteeRegistry } from "../../src/BlindedInbox.sol";
import { CommitteeRegistry } from "../../src/CommitteeRegistry.sol";
import { BatchHeader } from "../../src/libraries/BatchHeaders.sol";
import { Bls12381 } from "../../src/libraries/Bls12381.sol";
import { Domain } from "../../src/libraries/Domain.sol";
import { BlsSigner } from "./BlsSigner.sol";
import { Test } from "./Test.sol";

/// @notice A registry and an inbox with known keys, and headers and certificates for them.
abstract contract Deployment is Test {
    uint256 internal constant SEQUENCER_KEY = 0x5e9;
    address internal constant GOVERNOR = address(0x60);
    address internal constant POSTER = address(0x9057e4);
    uint64 internal constant EPOCH_LAST = 1_000;

    CommitteeRegistry internal registry;
    BlindedInbox internal inbox;

    function deployContracts() internal {
        address inboxAddress = vm.computeCreateAddress(address(this), vm.getNonce(address(this)) + 1);
        registry = new CommitteeRegistry(GOVERNOR, inboxAddress);
        inbox = new BlindedInbox(ICommitteeRegistry(address(registry)), vm.addr(SEQUENCER_KEY));
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
            encryptionKey: encryptionKey,
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

    /// @dev `count` headers that follow the inbox's head.
    function run(uint256 count) internal view returns (BatchHeader[] memory headers) {
        headers = new BatchHeader[](count);
        bytes32 parent = inbox.headHash();
        (uint64 number, uint64 timestampMs, uint64 origin, uint64 cursor) = inbox.head();
        for (uint256 i = 0; i < count; i++) {
            number++;
            timestampMs += 250;
            origin += uint64(i % 2);
            headers[i] = BatchHeader({
                version: 1,
                number: number,
                parentHash: parent,
                timestampMs: timestampMs,
                l1OriginNumber: origin,
                l1OriginHash: keccak256(abi.encode("origin", origin)),
                envelopeRoot: keccak256(abi.encode("envelopes", number)),
                envelopeCount: 100,
                envelopeBytes: 62_200,
                gas: 8_000_000,
                baseFee: 1 gwei,
                feeLedgerRoot: keccak256(abi.encode("ledger", number)),
                forcedCursor: cursor,
                epoch: 1
            });
            parent = inbox.hashHeader(headers[i]);
        }
    }

    function post(BatchHeader[] memory headers, BlindedInbox.Certificate memory certificate_) internal {
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", certificate_);
    }

    /// @dev The sequencer's signature over a header.
    function signHeader(uint256 key, BatchHeader memory header) internal view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(key, Domain.digest(inbox.domainSeparator(), inbox.hashHeader(header)));
        return abi.encodePacked(r, s, v);
    }
}
