// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FixedPointMathLib } from "solady/utils/FixedPointMathLib.sol";
import { IBlindedInbox, Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { ForcedEntry, IForcedQueue } from "./interfaces/IForcedQueue.sol";
import { Envelopes } from "./libraries/Envelopes.sol";

/// @title Items that the rollup must take
/// @notice Anyone puts an envelope, or a transaction in the clear, into the queue; a batch whose L1 origin is
/// `forcedDelay` blocks later must contain it, or the BlindedInbox refuses the header (docs/protocol.md, "Forced
/// queue"). Entries are taken strictly in order and the rollup's own rules skip an invalid one, so nobody can stop the
/// queue with an item. The L1 sender pays here; the item pays no ordering fee.
///
/// It pays for the item's bytes, and for the gas that the item reserves in its second, used or not. The price of gas
/// rises by a factor of e with every `GAS_PER_E_FOLD` that is forced, within a block as well, and falls back as
/// `TARGET_GAS_PER_BLOCK` drain away in each L1 block: who wants to fill the queue for long pays exponentially. What the
/// bytes cost is the sequencer's; what the gas costs is burnt, so that it gains nothing from filling its own queue.
///
/// | slot | storage |
/// |---|---|
/// | 0 | `length`, `forcedBytes`, excess gas, the L1 block it is of (u64 each) |
/// | 1 | `collectedBytes` u64 |
/// | 2 | `entries[index]`, two slots each |
/// @dev Nobody can take funds out but by `collect`, which pays the sequencer and burns. No entry is ever changed or
/// removed.
contract ForcedQueue is IForcedQueue {
    /// @notice An entry that is an encrypted envelope.
    uint8 public constant ENVELOPE = 0;
    /// @notice An entry that is a transaction in the clear.
    uint8 public constant TRANSACTION = 1;

    /// @notice The shortest envelope in bytes: the smallest size bucket.
    uint256 public constant MIN_ENVELOPE_BYTES = 639;
    /// @notice The longest envelope in bytes: the largest size bucket.
    uint256 public constant MAX_ENVELOPE_BYTES = 33_151;
    /// @notice The longest raw transaction in bytes.
    uint256 public constant MAX_TRANSACTION_BYTES = 32_768;
    /// @notice The least gas limit of a forced transaction.
    uint64 public constant MIN_GAS_LIMIT = 21_000;
    /// @notice The largest gas limit of a forced transaction.
    uint64 public constant MAX_GAS_LIMIT = 10_000_000;
    /// @notice Batches in a second: one each 250 ms.
    uint256 public constant BATCHES_PER_SECOND = 4;
    /// @notice Seconds between two L1 blocks.
    uint256 public constant L1_BLOCK_SECONDS = 12;
    /// @notice What L1 takes to make a block final, and as long again to spare.
    uint256 public constant FINALITY_SECONDS = 2 * 900;

    /// @notice Gas that drains away in each L1 block: what can be forced for long at the least price.
    uint64 public constant TARGET_GAS_PER_BLOCK = 10_000_000;
    /// @notice Gas above the target that multiplies the price by e.
    uint64 public constant GAS_PER_E_FOLD = 80_000_000;
    /// @dev The price stops at e^80 times the least: nobody pays that, and no product overflows.
    uint256 private constant MAX_EXPONENT_WAD = 80e18;

    /// @dev First byte of every envelope: the version of the structure.
    bytes1 internal constant ENVELOPE_VERSION = 0x02;
    /// @dev First byte of a forced transaction's item in a batch.
    bytes1 internal constant TRANSACTION_TAG = 0xff;
    /// @dev What stands before the raw transaction in its item: the tag and the gas limit.
    uint256 internal constant TRANSACTION_PREFIX_BYTES = 9;

    /// @notice Whose headers must take the items.
    IBlindedInbox public immutable inbox;
    /// @notice The committees, which say when an epoch ends.
    ICommitteeRegistry public immutable registry;
    /// @notice What a byte given to `force` costs, in wei.
    uint128 public immutable feePerByteWei;
    /// @notice The least price of gas that an item reserves, in wei.
    uint64 public immutable minGasPriceWei;

    /// @inheritdoc IForcedQueue
    uint64 public override length;
    /// @notice Bytes that were ever given to `force`.
    uint64 public forcedBytes;
    /// @dev Gas above the target after the last item.
    uint64 private excessGas;
    /// @dev The L1 block of the last item.
    uint64 private excessBlock;
    /// @notice Those of them that were paid to the sequencer.
    uint64 public collectedBytes;

    mapping(uint64 index => ForcedEntry) private entries;

    /// @notice `sender` enqueued `item`, as it was given: for a transaction the raw one, without the prefix that it
    /// has in a batch.
    event Forced(uint64 indexed index, address indexed sender, uint8 kind, uint64 gasLimit, bytes item);
    /// @notice The fees of the bytes went to the sequencer; the rest is burnt.
    event Collected(address indexed sequencer, uint256 amount, uint256 burnt);

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
    /// @notice The end of that epoch is announced: it could come, after L1 block `until`, before the item is due. Wait for the
    /// next epoch.
    error EpochEndAnnounced(uint64 until);
    /// @notice Send at least `least` wei.
    error FeeTooLow(uint256 given, uint256 least);
    /// @notice There are no fees to collect.
    error NothingToCollect();
    /// @notice A transfer of ether failed.
    error TransferFailed(address to);

    /// @param inbox_ Address of the BlindedInbox; it is deployed afterwards, so the address is computed beforehand.
    /// @param registry_ The CommitteeRegistry made for the same inbox.
    /// @param feePerByteWei_ What a byte given to `force` costs, in wei.
    /// @param minGasPriceWei_ The least price of gas that an item reserves, in wei.
    constructor(
        IBlindedInbox inbox_,
        ICommitteeRegistry registry_,
        uint128 feePerByteWei_,
        uint64 minGasPriceWei_
    ) {
        if (registry_.inbox() != address(inbox_)) {
            revert ForeignRegistry(registry_.inbox());
        }
        inbox = inbox_;
        registry = registry_;
        feePerByteWei = feePerByteWei_;
        minGasPriceWei = minGasPriceWei_;
    }

    /// @notice Enqueues an item for `feeOf` its gas and length; what comes above goes back to the sender, so send more
    /// where others may be in front.
    /// @dev About 80,000 gas for a short transaction, base cost and calldata included; 40 gas for each further byte.
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
        uint64 gas = kind == ENVELOPE ? Envelopes.gasLimit(item) : gasLimit;
        uint256 excess = excessNow();
        uint256 fee = feeAt(excess, gas, item.length);
        if (msg.value < fee) revert FeeTooLow(msg.value, fee);

        added.kind = kind;
        added.gasLimit = gasLimit;
        added.enqueuedAt = uint64(block.number);
        index = length;
        entries[index] = added;
        length = index + 1;
        forcedBytes += uint64(item.length);
        excess += gas;
        excessGas = excess < type(uint64).max ? uint64(excess) : type(uint64).max;
        excessBlock = uint64(block.number);
        emit Forced(index, msg.sender, kind, gasLimit, item);
        if (msg.value > fee) send(msg.sender, msg.value - fee);
    }

    /// @notice What an item costs in this L1 block, in wei.
    /// @param gas The gas limit of a forced transaction, or that which an envelope's header names.
    /// @param size Bytes that are given to `force`.
    function feeOf(uint64 gas, uint256 size) external view returns (uint256) {
        return feeAt(excessNow(), gas, size);
    }

    /// @notice What `force` with the same arguments costs in this L1 block, in wei.
    function quote(uint8 kind, uint64 gasLimit, bytes calldata item) external view returns (uint256) {
        uint64 gas = kind == ENVELOPE ? Envelopes.gasLimit(item) : gasLimit;
        return feeAt(excessNow(), gas, item.length);
    }

    /// @notice The price of reserved gas in this L1 block, in wei.
    function gasPriceWei() external view returns (uint256) {
        return priceAt(excessNow());
    }

    /// @notice Sends the fees of the bytes to the sequencer and burns those of the gas. Anyone may.
    function collect() external {
        uint256 balance = address(this).balance;
        if (balance == 0) revert NothingToCollect();
        address sequencer = inbox.sequencer();
        uint256 amount = uint256(feePerByteWei) * (forcedBytes - collectedBytes);
        collectedBytes = forcedBytes;
        emit Collected(sequencer, amount, balance - amount);
        send(sequencer, amount);
        send(address(0), balance - amount);
    }

    /// @inheritdoc IForcedQueue
    function enqueuedAt(uint64 index) external view override returns (uint64) {
        return entries[index].enqueuedAt;
    }

    /// @inheritdoc IForcedQueue
    function entry(uint64 index) external view override returns (ForcedEntry memory) {
        return entries[index];
    }

    /// @dev Gas above the target, as it has drained until now.
    function excessNow() private view returns (uint256) {
        uint256 drained = (block.number - excessBlock) * TARGET_GAS_PER_BLOCK;
        return excessGas > drained ? excessGas - drained : 0;
    }

    function feeAt(uint256 excess, uint64 gas, uint256 size) private view returns (uint256) {
        return uint256(feePerByteWei) * size + priceAt(excess) * gas;
    }

    /// @dev Rule FI-6.
    function priceAt(uint256 excess) private view returns (uint256) {
        uint256 exponent = excess * 1e18 / GAS_PER_E_FOLD;
        if (exponent > MAX_EXPONENT_WAD) exponent = MAX_EXPONENT_WAD;
        return uint256(FixedPointMathLib.expWad(int256(exponent))) * minGasPriceWei / 1e18;
    }

    function send(address to, uint256 amount) private {
        (bool sent,) = to.call{ value: amount }("");
        if (!sent) revert TransferFailed(to);
    }

    /// @dev An envelope whose epoch could end before a header must have taken it would be of no use to anybody. That is
    /// `forcedDelay` after it was enqueued by the header's origin, which may be `maxOriginAgeSeconds` behind. Before an
    /// announced end as many blocks are kept free: what is not posted by then gives way to L1's header, and what was
    /// forced before that header is of another generation (FI-3).
    function checkEnvelope(uint64 gasLimit, bytes calldata item) private view {
        if (item.length < MIN_ENVELOPE_BYTES || item.length > MAX_ENVELOPE_BYTES) {
            revert BadItemLength(item.length, MIN_ENVELOPE_BYTES, MAX_ENVELOPE_BYTES);
        }
        if (item[0] != ENVELOPE_VERSION) revert NotAnEnvelope(item[0]);
        if (gasLimit != 0) revert BadGasLimit(gasLimit, 0, 0);
        // The price rises with what was taken before: one item must not take at its beginning what closes the queue.
        uint64 named = Envelopes.gasLimit(item);
        if (named > MAX_GAS_LIMIT) revert BadGasLimit(named, 0, MAX_GAS_LIMIT);
        (uint64 headNumber,,,) = inbox.head();
        uint64 number = headNumber + 1;
        (, uint64 lastNumber) = registry.numbersOf(registry.epochOf(number));
        Timing memory timing = inbox.timing();
        uint256 untilTaken =
            timing.forcedDelay * L1_BLOCK_SECONDS + timing.maxOriginAgeSeconds + FINALITY_SECONDS;
        if (lastNumber - headNumber < untilTaken * BATCHES_PER_SECOND) {
            revert EpochEndsTooSoon(headNumber, lastNumber);
        }
        uint64 until = registry.endsAfter(number);
        if (until < block.number + untilTaken / L1_BLOCK_SECONDS) revert EpochEndAnnounced(until);
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
