// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { SSTORE2 } from "solady/utils/SSTORE2.sol";
import { IBlindedInbox, RunReference, Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "../../src/interfaces/ICommitteeRegistry.sol";
import { IHintVerifier } from "../../src/interfaces/IHintVerifier.sol";
import { BatchHeader, BatchHeaders } from "../../src/libraries/BatchHeaders.sol";
import { MerkleTree } from "../../src/libraries/MerkleTree.sol";
import { BlsSigner } from "./BlsSigner.sol";

/// @dev Has the runs that it is told of.
contract MockRunInbox is IBlindedInbox {
    using BatchHeaders for BatchHeader;

    mapping(uint64 last => bytes32 commitment) public runCommitment;
    Timing private deadlines;

    constructor(Timing memory deadlines_) {
        deadlines = deadlines_;
    }

    function tell(RunReference calldata run) external {
        runCommitment[run.last] = keccak256(abi.encode(run));
    }

    function sequencer() external pure returns (address) {
        return address(0x5e9);
    }

    function timing() external view returns (Timing memory) {
        return deadlines;
    }

    function head() external pure returns (uint64, uint64, uint64, uint64) {
        return (0, 0, 0, 0);
    }

    function headHash() external pure returns (bytes32) {
        return bytes32(0);
    }

    function lastCertifiedAt() external pure returns (uint64) {
        return 0;
    }

    function headPostedAt() external pure returns (uint64) {
        return 0;
    }

    function slashedAt(address) external pure returns (uint64) {
        return 0;
    }

    function l1MadeBelow(uint64, uint64, uint64) external pure returns (bool) {
        return false;
    }

    function lastMadeBelow(uint64) external pure returns (uint64) {
        return 0;
    }

    function isRun(RunReference calldata run) public view returns (bool) {
        return runCommitment[run.last] == keccak256(abi.encode(run));
    }

    function verifyHeader(BatchHeader calldata header, RunReference calldata run, bytes32[] calldata proof)
        external
        view
        returns (bool posted, bytes32 headerHash)
    {
        headerHash = header.hash();
        if (header.number < run.first || header.number > run.last || !isRun(run)) return (false, headerHash);
        posted = MerkleTree.verify(
            run.headerRoot,
            uint256(run.last) - run.first + 1,
            header.number - run.first,
            MerkleTree.leaf(headerHash),
            proof
        );
    }
}

/// @dev One epoch with one key, and with an h_1 that has nothing to do with it.
contract MockCommitteeRegistry is ICommitteeRegistry {
    /// @dev τ.
    uint256 public constant TAU = 0x7a0;
    address public inbox;
    uint64 public constant epochCount = 1;
    uint32 public constant epochNotice = type(uint32).max;
    address private immutable key;
    address private immutable power;

    constructor(address inbox_) {
        inbox = inbox_;
        bytes memory bytes_ = new bytes(576);
        for (uint256 i = 0; i < 576; i++) {
            bytes_[i] = bytes1(uint8(i * 7 + 1));
        }
        key = SSTORE2.write(bytes_);
        power = SSTORE2.write(BlsSigner.key(TAU));
    }

    function verifyCertificate(uint64, uint64, bytes32, uint64, bytes calldata)
        external
        pure
        returns (uint64)
    {
        return 1;
    }

    function encryptionKey(uint64) external view returns (bytes memory) {
        return SSTORE2.read(key);
    }

    function h1(uint64) external view returns (bytes memory) {
        return SSTORE2.read(power);
    }

    function acknowledged(uint64, uint64, bytes32, uint64, bytes calldata) external pure returns (bool) {
        return true;
    }

    function memberKey(uint64, uint16) external pure returns (bytes memory) {
        return BlsSigner.G2_GENERATOR;
    }

    function sequencerAt(uint64) external pure returns (address) {
        return address(0);
    }

    function sequencerUntil(address) external pure returns (uint64) {
        return 0;
    }

    function rulesOf(uint64) external pure returns (uint16) {
        return 1;
    }

    function servingEpoch(uint64) external pure returns (uint64) {
        return 1;
    }

    function epochOf(uint64) external pure returns (uint64) {
        return 1;
    }

    function endDue(uint64) external pure returns (bool) {
        return false;
    }

    function endsAfter(uint64) external pure returns (uint64) {
        return type(uint64).max;
    }

    function endEpochAt(uint64) external pure { }

    function numbersOf(uint64) external pure returns (uint64, uint64) {
        return (1, type(uint64).max);
    }
}

/// @dev Answers as told: the key of a ciphertext, or a failure of some sort.
contract MockHintVerifier is IHintVerifier {
    enum Failure {
        None,
        Reverts,
        RunsOutOfGas,
        AnswersTooLittle
    }

    error MockRevert();

    mapping(bytes32 ciphertext => bytes16 key) private keys;
    Failure public failure;

    /// @dev `key` opens this ciphertext, and no other does; the zero key opens nothing.
    function tell(bytes32 ad, bytes calldata c, bytes16 d, bytes calldata e, bytes16 key) external {
        keys[keccak256(abi.encode(ad, c, d, e))] = key;
    }

    function fail(Failure failure_) external {
        failure = failure_;
    }

    function verify(
        bytes32 ad,
        bytes calldata c,
        bytes16 d,
        bytes calldata e,
        bytes16 key,
        bytes calldata encryptionKey
    ) external view returns (bool ok, bytes memory message) {
        if (failure == Failure.Reverts) revert MockRevert();
        if (failure == Failure.RunsOutOfGas) {
            while (true) { }
        }
        if (failure == Failure.AnswersTooLittle) {
            assembly {
                return(0, 31)
            }
        }
        require(c.length == 48 && encryptionKey.length == 576, "lengths");
        ok = key != 0 && keys[keccak256(abi.encode(ad, c, d, e))] == key;
        if (ok) message = e;
    }
}
