// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";

/// @title The sequencer's claims of L2 state
/// @notice For every L2 block, in order, what the sequencer says its hash and state root are. One commitment stands for
/// a whole proposal; the outputs are in its event. **Claims, not proofs**: no
/// contract checks them and nothing is paid on them. Every node compares them with its own execution and alarms when
/// they differ; since none is ever replaced, a false one stands for good.
/// @dev No owner. Storage: `lastBlock` and `lastProposedAt` slot 0, `commitments` (one slot for a proposal) slot 1; `inbox` stands in the code.
contract OutputRegistry {
    /// @notice How far, in seconds and so in L2 blocks at most, a claim is behind the last posted header: ordering and
    /// fees never wait for execution.
    uint256 public constant DELAY_SECONDS = 10;

    /// @notice What is claimed of one L2 block.
    struct Output {
        /// Number of the L2 block; the first is 1.
        uint64 l2Block;
        /// Number of the last batch that is in it.
        uint64 batch;
        /// Its timestamp in seconds.
        uint64 timestamp;
        /// Its hash.
        bytes32 blockHash;
        /// The root of the state after it.
        bytes32 stateRoot;
    }

    /// @notice Whose sequencer proposes, and where batches are posted.
    IBlindedInbox public immutable inbox;

    /// @notice The last L2 block that has an output; 0 for none.
    uint64 public lastBlock;
    /// @notice The L1 block of the last proposal; 0 for none. Its event tells that of the one before.
    uint64 public lastProposedAt;
    /// @notice `keccak256(abi.encode(outputs))` of the proposal that ends with an L2 block; zero where none ends.
    mapping(uint64 lastBlock => bytes32 commitment) public commitments;

    /// @notice The sequencer claims this of L2 blocks `firstBlock` to `lastBlock`.
    /// @param previousAt The L1 block of the proposal before; 0 for none.
    event OutputsProposed(
        uint64 indexed firstBlock, uint64 indexed lastBlock, uint64 previousAt, Output[] outputs
    );

    /// @notice Only the sequencer may do this.
    error NotSequencer(address caller);
    /// @notice A proposal without outputs.
    error EmptyProposal();
    /// @notice Outputs follow each other without a gap and are never replaced: go on with block `expected`.
    error WrongBlock(uint64 expected, uint64 given);
    /// @notice The batch has not been posted (the last one is `head`), or is none: post it first.
    error BatchNotPosted(uint64 batch, uint64 head);
    /// @notice The last posted header is not yet `DELAY_SECONDS` after the block: post later batches first.
    error TooEarly(uint64 l2Block, uint256 neededTimestampMs, uint64 headTimestampMs);

    /// @param inbox_ Whose sequencer proposes.
    constructor(IBlindedInbox inbox_) {
        inbox = inbox_;
    }

    /// @notice Claims the outputs of the L2 blocks that follow the last one claimed, in order. For the sequencer only.
    function propose(Output[] calldata proposed) external {
        if (msg.sender != inbox.sequencer()) revert NotSequencer(msg.sender);
        if (proposed.length == 0) revert EmptyProposal();
        (uint64 head, uint64 headTimestampMs,,) = inbox.head();
        uint64 last = lastBlock;
        for (uint256 i = 0; i < proposed.length; i++) {
            Output calldata next = proposed[i];
            last++;
            if (next.l2Block != last) revert WrongBlock(last, next.l2Block);
            if (next.batch == 0 || next.batch > head) revert BatchNotPosted(next.batch, head);
            uint256 neededMs = (uint256(next.timestamp) + DELAY_SECONDS) * 1_000;
            if (headTimestampMs < neededMs) revert TooEarly(last, neededMs, headTimestampMs);
        }
        commitments[last] = keccak256(abi.encode(proposed));
        emit OutputsProposed(proposed[0].l2Block, last, lastProposedAt, proposed);
        lastBlock = last;
        lastProposedAt = uint64(block.number);
    }

    /// @notice Whether just these outputs were claimed in one proposal.
    function isProposed(Output[] calldata outputs) external view returns (bool) {
        if (outputs.length == 0) return false;
        return commitments[outputs[outputs.length - 1].l2Block] == keccak256(abi.encode(outputs));
    }
}
