// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { ForcedQueue } from "../src/ForcedQueue.sol";
import { IBlindedInbox } from "../src/interfaces/IBlindedInbox.sol";
import { ForcedEntry } from "../src/interfaces/IForcedQueue.sol";
import { Deployment } from "./helpers/Deployment.sol";

contract ForcedQueueTest is Deployment {
    event Forced(uint64 indexed index, address indexed sender, uint8 kind, uint64 gasLimit, bytes item);
    event Collected(address indexed sequencer, uint256 amount);

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        vm.deal(address(this), 100 ether);
    }

    function expectRefusal(uint8 kind, uint64 gasLimit, bytes memory item, bytes memory reason) internal {
        uint256 fee = item.length * FEE_PER_BYTE;
        vm.expectRevert(reason);
        queue.force{ value: fee }(kind, gasLimit, item);
    }

    function testConstructor() public {
        checkEqual(address(queue.inbox()), address(inbox), "inbox");
        checkEqual(address(queue.registry()), address(registry), "registry");
        checkEqual(queue.feePerByteWei(), FEE_PER_BYTE, "fee");
        checkEqual(queue.length(), 0, "empty");
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.ForeignRegistry.selector, address(inbox)));
        new ForcedQueue(IBlindedInbox(address(1)), registry, FEE_PER_BYTE);
    }

    /// forge-config: default.isolate = true
    function testGas() public {
        forceTransaction(100, 21_000); // the first entry pays for the counter's slot
        uint64 index = forceEnvelope(622);
        vm.snapshotGasLastCall("ForcedQueue.force, envelope of 622 bytes");
        checkEqual(index, 1, "index");
        forceEnvelope(33_134);
        vm.snapshotGasLastCall("ForcedQueue.force, envelope of 33,134 bytes");
        forceTransaction(110, 21_000);
        vm.snapshotGasLastCall("ForcedQueue.force, transaction of 110 bytes");
    }

    function testFuzzEnvelope(uint256 size, uint256 paidOnTop) public {
        size = bound(size, 622, 33_134);
        paidOnTop = bound(paidOnTop, 0, 1 ether);
        bytes memory item = filled(size, 0x01);
        vm.expectEmit(true, true, true, true, address(queue));
        emit Forced(0, address(this), 0, 0, item);
        queue.force{ value: size * FEE_PER_BYTE + paidOnTop }(0, 0, item);
        ForcedEntry memory entry = queue.entry(0);
        checkEqual(entry.itemHash, keccak256(item), "hash");
        checkEqual(entry.length, size, "length");
        checkEqual(entry.enqueuedAt, block.number, "block");
        checkEqual(entry.gasLimit, 0, "gas limit");
        checkEqual(entry.kind, 0, "kind");
        checkEqual(queue.enqueuedAt(0), block.number, "block");
        checkEqual(queue.enqueuedAt(1), 0, "none");
        checkEqual(queue.length(), 1, "length");
        checkEqual(address(queue).balance, size * FEE_PER_BYTE + paidOnTop, "kept");
    }

    function testFuzzTransaction(bytes calldata raw, uint64 gasLimit) public {
        vm.assume(raw.length != 0);
        gasLimit = uint64(bound(gasLimit, 21_000, 10_000_000));
        forceTransaction(50, 21_000);
        vm.expectEmit(true, true, true, true, address(queue));
        emit Forced(1, address(this), 1, gasLimit, raw);
        uint64 index = queue.force{ value: raw.length * FEE_PER_BYTE }(1, gasLimit, raw);
        checkEqual(index, 1, "index");
        ForcedEntry memory entry = queue.entry(1);
        checkEqual(entry.itemHash, keccak256(bytes.concat(hex"02", bytes8(gasLimit), raw)), "hash");
        checkEqual(entry.length, raw.length + 9, "length");
        checkEqual(entry.gasLimit, gasLimit, "gas limit");
        checkEqual(entry.kind, 1, "kind");
    }

    function testFuzzUnknownKind(uint8 kind) public {
        vm.assume(kind > 1);
        expectRefusal(
            kind, 21_000, filled(700, 0x01), abi.encodeWithSelector(ForcedQueue.UnknownKind.selector, kind)
        );
    }

    function testEnvelopeRefusals() public {
        expectRefusal(
            0,
            0,
            filled(621, 0x01),
            abi.encodeWithSelector(ForcedQueue.BadItemLength.selector, 621, 622, 33_134)
        );
        expectRefusal(
            0,
            0,
            filled(33_135, 0x01),
            abi.encodeWithSelector(ForcedQueue.BadItemLength.selector, 33_135, 622, 33_134)
        );
        expectRefusal(
            0, 0, filled(700, 0x02), abi.encodeWithSelector(ForcedQueue.NotAnEnvelope.selector, bytes1(0x02))
        );
        expectRefusal(
            0, 1, filled(700, 0x01), abi.encodeWithSelector(ForcedQueue.BadGasLimit.selector, 1, 0, 0)
        );
    }

    function testTransactionRefusals() public {
        expectRefusal(1, 21_000, "", abi.encodeWithSelector(ForcedQueue.BadItemLength.selector, 0, 1, 32_768));
        expectRefusal(
            1,
            21_000,
            filled(32_769, 0x02),
            abi.encodeWithSelector(ForcedQueue.BadItemLength.selector, 32_769, 1, 32_768)
        );
        forceTransaction(32_768, 21_000);
        forceTransaction(1, 10_000_000);
        expectRefusal(
            1,
            20_999,
            filled(100, 0x02),
            abi.encodeWithSelector(ForcedQueue.BadGasLimit.selector, 20_999, 21_000, 10_000_000)
        );
        expectRefusal(
            1,
            10_000_001,
            filled(100, 0x02),
            abi.encodeWithSelector(ForcedQueue.BadGasLimit.selector, 10_000_001, 21_000, 10_000_000)
        );
    }

    function testFuzzFee(uint256 size, uint256 paid) public {
        size = bound(size, 1, 2_000);
        uint256 fee = size * FEE_PER_BYTE;
        paid = bound(paid, 0, 2 * fee);
        bytes memory item = filled(size, 0x02);
        if (paid < fee) {
            vm.expectRevert(abi.encodeWithSelector(ForcedQueue.FeeTooLow.selector, paid, fee));
        }
        queue.force{ value: paid }(1, 21_000, item);
    }

    /// @dev 300 L1 blocks of 48 batches must fit in the epoch of the next number.
    function testEnvelopeNeedsTheEpochToLast() public {
        deployContracts();
        registerEpoch(14_401, 4, 3);
        registerEpoch(30_000, 4, 3);
        bytes memory item = filled(622, 0x01);
        forceEnvelope(622);
        postRun(run(1));
        forceEnvelope(622);
        postRun(run(1));
        expectRefusal(0, 0, item, abi.encodeWithSelector(ForcedQueue.EpochEndsTooSoon.selector, 2, 14_401));
        forceTransaction(622, 21_000); // a transaction is of no epoch
    }

    function testEnvelopeAtAnEpochsEnd() public {
        deployContracts();
        registerEpoch(2, 4, 3);
        bytes memory item = filled(622, 0x01);
        postRun(run(2));
        expectRefusal(0, 0, item, abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registerEpoch(2 + 14_400, 4, 3); // the next number is of this one
        forceEnvelope(622);
    }

    function testCollect() public {
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.NothingToCollect.selector));
        queue.collect();
        forceTransaction(100, 21_000);
        forceTransaction(200, 21_000);
        address sequencer = inbox.sequencer();
        vm.expectEmit(true, true, true, true, address(queue));
        emit Collected(sequencer, 300 * FEE_PER_BYTE);
        queue.collect();
        checkEqual(sequencer.balance, 300 * FEE_PER_BYTE, "collected");
        checkEqual(address(queue).balance, 0, "left");
        forceTransaction(100, 21_000);
        vm.etch(sequencer, hex"fe");
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.TransferFailed.selector, sequencer));
        queue.collect();
    }
}
