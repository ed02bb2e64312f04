// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";

/// @title The sequencer's claims of L2 state
/// @notice For every L2 block, in order, what the sequencer says its hash and state root are. **Claims, not proofs**: no
/// contract checks them and nothing is paid on them. Every node compares them with its own execution and alarms when
/// they differ; since none is ever replaced, a false one stands for good.
/// @dev No owner. Storage: `lastBlock` slot 0, `outputs` (three slots for a block) slot 1; `inbox` stands in the code.
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
    /// @dev Outputs by L2 block.
    mapping(uint64 l2Block => Output output) private outputs;

    /// @notice The sequencer claims this of L2 block `l2Block`.
    event OutputProposed(
        uint64 indexed l2Block, uint64 indexed batch, uint64 timestamp, bytes32 blockHash, bytes32 stateRoot
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
            outputs[last] = next;
            emit OutputProposed(last, next.batch, next.timestamp, next.blockHash, next.stateRoot);
        }
        lastBlock = last;
    }

    /// @notice What was claimed of L2 block `l2Block`; all zero when nothing was.
    function output(uint64 l2Block) external view returns (Output memory) {
        return outputs[l2Block];
    }
}
