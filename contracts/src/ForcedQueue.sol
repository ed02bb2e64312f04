// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { ForcedEntry, IForcedQueue } from "./interfaces/IForcedQueue.sol";

/// @title Items that the rollup must take
/// @notice Anyone puts an envelope, or a transaction in the clear, into the queue; a batch whose L1 origin is
/// `forcedDelay` blocks later must contain it, or the BlindedInbox refuses the header (docs/protocol.md, "Forced
/// queue"). Entries are taken strictly in order and the rollup's own rules skip an invalid one, so nobody can stop the
/// queue with an item. The L1 sender pays for the bytes here; the item pays no ordering fee.
///
/// Storage: slot 0 holds the number of entries; entry `i` lies in two slots under the mapping of slot 1.
/// @dev Nobody can take funds out but by `collect`, which pays the sequencer. No entry is ever changed or removed.
contract ForcedQueue is IForcedQueue {
    /// @notice An entry that is an encrypted envelope.
    uint8 public constant ENVELOPE = 0;
    /// @notice An entry that is a transaction in the clear.
    uint8 public constant TRANSACTION = 1;

    /// @notice The shortest envelope in bytes: the smallest size bucket.
    uint256 public constant MIN_ENVELOPE_BYTES = 622;
    /// @notice The longest envelope in bytes: the largest size bucket.
    uint256 public constant MAX_ENVELOPE_BYTES = 33_134;
    /// @notice The longest raw transaction in bytes.
    uint256 public constant MAX_TRANSACTION_BYTES = 32_768;
    /// @notice The least gas limit of a forced transaction.
    uint64 public constant MIN_GAS_LIMIT = 21_000;
    /// @notice The largest gas limit of a forced transaction.
    uint64 public constant MAX_GAS_LIMIT = 10_000_000;
    /// @notice The most batches in one L1 block: 12 s of 250 ms.
    uint256 public constant BATCHES_PER_L1_BLOCK = 48;

    /// @dev First byte of every envelope: the version of the structure.
    bytes1 internal constant ENVELOPE_VERSION = 0x01;
    /// @dev First byte of a forced transaction's item in a batch.
    bytes1 internal constant TRANSACTION_TAG = 0x02;
    /// @dev What stands before the raw transaction in its item: the tag and the gas limit.
    uint256 internal constant TRANSACTION_PREFIX_BYTES = 9;

    /// @notice Whose headers must take the items.
    IBlindedInbox public immutable inbox;
    /// @notice The committees, which say when an epoch ends.
    ICommitteeRegistry public immutable registry;
    /// @notice What a byte given to `force` costs, in wei.
    uint128 public immutable feePerByteWei;

    /// @inheritdoc IForcedQueue
    uint64 public override length;

    mapping(uint64 index => ForcedEntry) private entries;

    /// @notice `sender` enqueued `item`, as it was given: for a transaction the raw one, without the prefix that it
    /// has in a batch.
    event Forced(uint64 indexed index, address indexed sender, uint8 kind, uint64 gasLimit, bytes item);
    /// @notice The fees went to the sequencer.
    event Collected(address indexed sequencer, uint256 amount);

    /// @notice The registry was made for another inbox.
    error ForeignRegistry(address inbox);
    /// @notice The kind is neither 0 (envelope) nor 1 (transaction).
    error UnknownKind(uint8 kind);
    /// @notice An item of this kind has between `least` and `most` bytes.
    error BadItemLength(uint256 given, uint256 least, uint256 most);
    /// @notice The bytes are no envelope: they do not begin with its version.
    error NotAnEnvelope(bytes1 firstByte);
    /// @notice The gas limit must be between `least` and `most`: 0 for an envelope, which names its own.
    error BadGasLimit(uint64 given, uint64 least, uint64 most);
    /// @notice The epoch that an envelope is encrypted for could end before the item is due: wait for the next one.
    error EpochEndsTooSoon(uint64 headNumber, uint64 lastNumber);
    /// @notice Send at least `least` wei.
    error FeeTooLow(uint256 given, uint256 least);
    /// @notice There are no fees to collect.
    error NothingToCollect();
    /// @notice A transfer of ether failed.
    error TransferFailed(address to);

    /// @param inbox_ Address of the BlindedInbox; it is deployed afterwards, so the address is computed beforehand.
    /// @param registry_ The CommitteeRegistry made for the same inbox.
    /// @param feePerByteWei_ What a byte given to `force` costs, in wei.
    constructor(IBlindedInbox inbox_, ICommitteeRegistry registry_, uint128 feePerByteWei_) {
        if (registry_.inbox() != address(inbox_)) revert ForeignRegistry(registry_.inbox());
        inbox = inbox_;
        registry = registry_;
        feePerByteWei = feePerByteWei_;
    }

    /// @notice Enqueues an item for at least `feePerByteWei · item.length` wei; what is above is not returned.
    /// @dev About 78,000 gas for a short transaction, base cost and calldata included; 40 gas for each further byte.
    /// @param kind 0 an envelope, 1 a transaction in the clear.
    /// @param gasLimit Gas that the transaction may use; 0 for an envelope.
    /// @param item The envelope's bytes, or the raw signed EIP-2718 transaction.
    /// @return index Its place in the queue, from 0.
    function force(uint8 kind, uint64 gasLimit, bytes calldata item) external payable returns (uint64 index) {
        ForcedEntry memory added;
        if (kind == ENVELOPE) {
            checkEnvelope(gasLimit, item);
            added.itemHash = keccak256(item);
            added.length = uint32(item.length);
        } else if (kind == TRANSACTION) {
            checkTransaction(gasLimit, item);
            added.itemHash = keccak256(abi.encodePacked(TRANSACTION_TAG, gasLimit, item));
            added.length = uint32(item.length + TRANSACTION_PREFIX_BYTES);
        } else {
            revert UnknownKind(kind);
        }
        uint256 fee = uint256(feePerByteWei) * item.length;
        if (msg.value < fee) revert FeeTooLow(msg.value, fee);

        added.kind = kind;
        added.gasLimit = gasLimit;
        added.enqueuedAt = uint64(block.number);
        index = length;
        entries[index] = added;
        length = index + 1;
        emit Forced(index, msg.sender, kind, gasLimit, item);
    }

    /// @notice Sends the fees to the sequencer. Anyone may.
    function collect() external {
        address sequencer = inbox.sequencer();
        uint256 amount = address(this).balance;
        if (amount == 0) revert NothingToCollect();
        emit Collected(sequencer, amount);
        (bool sent,) = sequencer.call{ value: amount }("");
        if (!sent) revert TransferFailed(sequencer);
    }

    /// @inheritdoc IForcedQueue
    function enqueuedAt(uint64 index) external view override returns (uint64) {
        return entries[index].enqueuedAt;
    }

    /// @inheritdoc IForcedQueue
    function entry(uint64 index) external view override returns (ForcedEntry memory) {
        return entries[index];
    }

    /// @dev An envelope whose epoch could end before it is due would be of no use to anybody.
    function checkEnvelope(uint64 gasLimit, bytes calldata item) private view {
        if (item.length < MIN_ENVELOPE_BYTES || item.length > MAX_ENVELOPE_BYTES) {
            revert BadItemLength(item.length, MIN_ENVELOPE_BYTES, MAX_ENVELOPE_BYTES);
        }
        if (item[0] != ENVELOPE_VERSION) revert NotAnEnvelope(item[0]);
        if (gasLimit != 0) revert BadGasLimit(gasLimit, 0, 0);
        (uint64 headNumber,,,) = inbox.head();
        (, uint64 lastNumber) = registry.numbersOf(registry.epochOf(headNumber + 1));
        if (lastNumber - headNumber < inbox.timing().forcedDelay * BATCHES_PER_L1_BLOCK) {
            revert EpochEndsTooSoon(headNumber, lastNumber);
        }
    }

    function checkTransaction(uint64 gasLimit, bytes calldata item) private pure {
        if (item.length == 0 || item.length > MAX_TRANSACTION_BYTES) {
            revert BadItemLength(item.length, 1, MAX_TRANSACTION_BYTES);
        }
        if (gasLimit < MIN_GAS_LIMIT || gasLimit > MAX_GAS_LIMIT) {
            revert BadGasLimit(gasLimit, MIN_GAS_LIMIT, MAX_GAS_LIMIT);
        }
    }
}
