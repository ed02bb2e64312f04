// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { RegistrySchedule } from "./RegistrySchedule.sol";
import { IBlindedInbox, Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry, RegistrySettings } from "./interfaces/ICommitteeRegistry.sol";

/// @title Whose signature stands under the headers
/// @notice A header is signed with the key that counts at its **L1 origin**. Origins never fall, and none is older than
/// `maxOriginAgeSeconds`, so a key that the governor no longer wants has an end, whether or not its holder goes on
/// sealing; and whoever has read this contract on a final block knows the key of every header with an origin up to there.
///
/// The governor names the next key `answerWindow` blocks ahead. With evidence against the present one `forcedDelay`
/// blocks are enough: it lost its bond, or nothing certified was posted for `postingDeadline` blocks.
abstract contract SequencerSchedule is RegistrySchedule {
    /// @notice A key and the L1 block from which on it counts.
    struct SequencerChange {
        uint64 fromBlock;
        address sequencer;
    }

    /// @notice The key that the deployment begins with.
    address public immutable firstSequencer;

    /// @notice Changes of the key, in order.
    SequencerChange[] public sequencerChanges;

    /// @dev The last L1 block of a key's newest term that another key's time ends, or will end.
    mapping(address sequencer => uint64 lastBlock) private termEnds;

    /// @notice Headers with an L1 origin from `fromBlock` on are signed with this key. What was named before and had not
    /// begun is void.
    event SequencerNamed(address indexed sequencer, uint64 fromBlock);

    /// @notice The sequencer is the zero address.
    error ZeroSequencer();

    constructor(address governor_, address inbox_, address sequencer_, RegistrySettings memory settings)
        RegistrySchedule(governor_, inbox_, settings)
    {
        if (sequencer_ == address(0)) revert ZeroSequencer();
        firstSequencer = sequencer_;
    }

    /// @notice Names the key of the headers to come. What was named before and has not begun gives way: naming the present
    /// key takes a change back (K-2).
    /// @return fromBlock The L1 block from which on it counts.
    function nameSequencer(address sequencer) external onlyGovernor returns (uint64 fromBlock) {
        if (sequencer == address(0)) revert ZeroSequencer();
        uint256 count = sequencerChanges.length;
        while (count != 0 && sequencerChanges[count - 1].fromBlock > block.number) {
            sequencerChanges.pop();
            count--;
        }
        address present = sequencerAt(uint64(block.number));
        fromBlock = uint64(block.number);
        if (sequencer != present) {
            fromBlock += sequencerNotice(present);
            termEnds[present] = fromBlock - 1;
            sequencerChanges.push(SequencerChange({ fromBlock: fromBlock, sequencer: sequencer }));
        }
        revision += 1;
        emit SequencerNamed(sequencer, fromBlock);
    }

    /// @notice How many changes of the key there are.
    function sequencerChangeCount() external view returns (uint256) {
        return sequencerChanges.length;
    }

    /// @inheritdoc ICommitteeRegistry
    function sequencerAt(uint64 l1Block) public view override returns (address) {
        for (uint256 i = sequencerChanges.length; i != 0; i--) {
            SequencerChange memory change = sequencerChanges[i - 1];
            if (l1Block >= change.fromBlock) return change.sequencer;
        }
        return firstSequencer;
    }

    /// @inheritdoc ICommitteeRegistry
    function sequencerUntil(address sequencer) external view override returns (uint64 lastBlock) {
        uint256 count = sequencerChanges.length;
        address last = count == 0 ? firstSequencer : sequencerChanges[count - 1].sequencer;
        // The last key's earlier terms do not matter, nor who was to follow and gave way.
        return sequencer == last ? type(uint64).max : termEnds[sequencer];
    }

    /// @dev The notice for a key after `present`.
    function sequencerNotice(address present) private view returns (uint32) {
        Timing memory timing = IBlindedInbox(inbox).timing();
        bool silent = block.number > uint256(IBlindedInbox(inbox).lastCertifiedAt()) + timing.postingDeadline;
        bool slashed = IBlindedInbox(inbox).slashedAt(present) != 0;
        return silent || slashed ? timing.forcedDelay : timing.answerWindow;
    }
}
