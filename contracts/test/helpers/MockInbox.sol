// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IBlindedInbox, RunReference, Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { BatchHeader, BatchHeaders } from "../../src/libraries/BatchHeaders.sol";
import { MerkleTree } from "../../src/libraries/MerkleTree.sol";

/// @notice An inbox without certificates, bonds and queue: it takes any chain of headers that keeps to the rules that
/// others rely on, and commits to runs like the real one.
contract MockInbox is IBlindedInbox {
    using BatchHeaders for BatchHeader;

    struct Head {
        uint64 number;
        uint64 timestampMs;
        uint64 l1OriginNumber;
        uint64 forcedCursor;
    }

    address public immutable sequencer;
    /// @dev It stands for its own CommitteeRegistry as well, as far as a vault asks.
    uint64 public epochCount = 1;
    uint32 public epochNotice;
    Head public head;
    bytes32 public headHash = keccak256("genesis");
    uint64 public lastCertifiedAt;
    mapping(uint64 last => bytes32 commitment) public runCommitment;

    Timing private timing_;

    error BadChain(uint64 number);
    error OriginTooOld(uint64 l1OriginNumber);
    error NotSilent();

    constructor(address sequencer_, Timing memory given) {
        epochNotice = given.withdrawalDelay + 1;
        sequencer = sequencer_;
        timing_ = given;
        lastCertifiedAt = uint64(block.number);
    }

    function inbox() external view returns (address) {
        return address(this);
    }

    function setEpochs(uint64 count, uint32 notice) external {
        (epochCount, epochNotice) = (count, notice);
    }

    function headPostedAt() external view returns (uint64) {
        return lastCertifiedAt;
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

    function timing() external view returns (Timing memory) {
        return timing_;
    }

    /// @dev What stands for a certified run: refused when its first header's origin is too old.
    function post(BatchHeader[] calldata headers) external returns (RunReference memory) {
        uint64 origin = headers[0].l1OriginNumber;
        if (uint256(origin) + timing_.postingDeadline < block.number) revert OriginTooOld(origin);
        lastCertifiedAt = uint64(block.number);
        return append(headers);
    }

    /// @dev What stands for a header that L1 makes after the committee's silence: nothing changes but the number.
    function postL1Header(BatchHeader[] calldata header) external returns (RunReference memory) {
        if (uint256(lastCertifiedAt) + timing_.postingDeadline > block.number) revert NotSilent();
        if (header.length != 1 || header[0].l1OriginNumber != head.l1OriginNumber) revert BadChain(0);
        return append(header);
    }

    function append(BatchHeader[] calldata headers) private returns (RunReference memory run) {
        bytes32[] memory leaves = new bytes32[](MerkleTree.width(headers.length));
        for (uint256 i = 0; i < headers.length; i++) {
            BatchHeader calldata header = headers[i];
            bool follows = header.number == head.number + 1 && header.parentHash == headHash
                && header.l1OriginNumber >= head.l1OriginNumber && header.l1OriginNumber < block.number;
            if (!follows) revert BadChain(header.number);
            headHash = header.hash();
            leaves[i] = MerkleTree.leaf(headHash);
            head = Head(header.number, header.timestampMs, header.l1OriginNumber, header.forcedCursor);
        }
        run = RunReference({
            first: headers[0].number,
            last: head.number,
            postedAt: uint64(block.number),
            headerRoot: MerkleTree.rootInPlace(leaves)
        });
        runCommitment[run.last] = keccak256(abi.encode(run));
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
        if (!isRun(run) || header.number < run.first || header.number > run.last) return (false, headerHash);
        posted = MerkleTree.verify(
            run.headerRoot,
            uint256(run.last) - run.first + 1,
            header.number - run.first,
            MerkleTree.leaf(headerHash),
            proof
        );
    }

    function hashHeader(BatchHeader calldata header) external pure returns (bytes32) {
        return header.hash();
    }
}
