// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { ForcedQueue } from "../src/ForcedQueue.sol";
import { IBlindedInbox } from "../src/interfaces/IBlindedInbox.sol";
import { ForcedEntry } from "../src/interfaces/IForcedQueue.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Deployment } from "./helpers/Deployment.sol";
import { Unpayable } from "./helpers/Unpayable.sol";

contract ForcedQueueTest is Deployment {
    event Forced(uint64 indexed index, address indexed sender, uint8 kind, uint64 gasLimit, bytes item);
    event Collected(address indexed sequencer, uint256 amount, uint256 burnt);

    receive() external payable { }

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        vm.deal(address(this), 100 ether);
    }

    function expectRefusal(uint8 kind, uint64 gasLimit, bytes memory item, bytes memory reason) internal {
        vm.expectRevert(reason);
        queue.force{ value: 10 ether }(kind, gasLimit, item);
    }

    function testConstructor() public {
        checkEqual(address(queue.inbox()), address(inbox), "inbox");
        checkEqual(address(queue.registry()), address(registry), "registry");
        checkEqual(queue.feePerByteWei(), FEE_PER_BYTE, "fee");
        checkEqual(queue.minGasPriceWei(), MIN_GAS_PRICE, "least price of gas");
        checkEqual(queue.gasPriceWei(), MIN_GAS_PRICE, "price of gas");
        checkEqual(queue.length(), 0, "empty");
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.ForeignRegistry.selector, address(inbox)));
        new ForcedQueue(IBlindedInbox(address(1)), registry, FEE_PER_BYTE, MIN_GAS_PRICE);
    }

    /// forge-config: default.isolate = true
    function testGas() public {
        forceTransaction(100, 21_000); // the first entry pays for the counter's slot
        uint64 index = forceEnvelope(639);
        vm.snapshotGasLastCall("ForcedQueue.force, envelope of 639 bytes");
        checkEqual(index, 1, "index");
        forceEnvelope(33_151);
        vm.snapshotGasLastCall("ForcedQueue.force, envelope of 33,151 bytes");
        forceTransaction(110, 21_000);
        vm.snapshotGasLastCall("ForcedQueue.force, transaction of 110 bytes");
    }

    function testFuzzEnvelope(uint256 size, uint256 paidOnTop) public {
        size = bound(size, 639, 33_151);
        paidOnTop = bound(paidOnTop, 0, 1 ether);
        bytes memory item = filled(size, 0x02);
        vm.expectEmit(true, true, true, true, address(queue));
        emit Forced(0, address(this), 0, 0, item);
        uint256 fee = size * FEE_PER_BYTE + 1_000_000 * uint256(MIN_GAS_PRICE);
        checkEqual(queue.feeOf(1_000_000, size), fee, "fee");
        checkEqual(queue.quote(0, 0, item), fee, "quote");
        queue.force{ value: fee + paidOnTop }(0, 0, item);
        ForcedEntry memory entry = queue.entry(0);
        checkEqual(entry.itemHash, keccak256(item), "hash");
        checkEqual(entry.length, size, "length");
        checkEqual(entry.enqueuedAt, block.number, "block");
        checkEqual(entry.gasLimit, 0, "gas limit");
        checkEqual(entry.kind, 0, "kind");
        checkEqual(queue.enqueuedAt(0), block.number, "block");
        checkEqual(queue.enqueuedAt(1), 0, "none");
        checkEqual(queue.length(), 1, "length");
        checkEqual(address(queue).balance, fee, "what is above went back");
    }

    function testFuzzTransaction(bytes calldata raw, uint64 gasLimit) public {
        vm.assume(raw.length != 0);
        gasLimit = uint64(bound(gasLimit, 21_000, 10_000_000));
        forceTransaction(50, 21_000);
        uint256 fee = queue.feeOf(gasLimit, raw.length);
        vm.expectEmit(true, true, true, true, address(queue));
        emit Forced(1, address(this), 1, gasLimit, raw);
        checkEqual(queue.quote(1, gasLimit, raw), fee, "quote");
        uint64 index = queue.force{ value: fee }(1, gasLimit, raw);
        checkEqual(index, 1, "index");
        ForcedEntry memory entry = queue.entry(1);
        checkEqual(entry.itemHash, keccak256(bytes.concat(hex"ff", bytes8(gasLimit), raw)), "hash");
        checkEqual(entry.length, raw.length + 9, "length");
        checkEqual(entry.gasLimit, gasLimit, "gas limit");
        checkEqual(entry.kind, 1, "kind");
    }

    function testFuzzUnknownKind(uint8 kind) public {
        vm.assume(kind > 1);
        expectRefusal(
            kind, 21_000, filled(700, 0x02), abi.encodeWithSelector(ForcedQueue.UnknownKind.selector, kind)
        );
    }

    function testEnvelopeRefusals() public {
        expectRefusal(
            0,
            0,
            filled(638, 0x02),
            abi.encodeWithSelector(ForcedQueue.BadItemLength.selector, 638, 639, 33_151)
        );
        expectRefusal(
            0,
            0,
            filled(33_152, 0x02),
            abi.encodeWithSelector(ForcedQueue.BadItemLength.selector, 33_152, 639, 33_151)
        );
        expectRefusal(
            0, 0, filled(700, 0x01), abi.encodeWithSelector(ForcedQueue.NotAnEnvelope.selector, bytes1(0x01))
        );
        expectRefusal(
            0, 0, filled(700, 0x03), abi.encodeWithSelector(ForcedQueue.NotAnEnvelope.selector, bytes1(0x03))
        );
        expectRefusal(
            0, 1, filled(700, 0x02), abi.encodeWithSelector(ForcedQueue.BadGasLimit.selector, 1, 0, 0)
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
        uint256 fee = size * FEE_PER_BYTE + 21_000 * uint256(MIN_GAS_PRICE);
        paid = bound(paid, 0, 2 * fee);
        bytes memory item = filled(size, 0x02);
        if (paid < fee) {
            vm.expectRevert(abi.encodeWithSelector(ForcedQueue.FeeTooLow.selector, paid, fee));
        }
        queue.force{ value: paid }(1, 21_000, item);
    }

    /// @dev 300 L1 blocks, the greatest age of an origin and half an hour must fit in the epoch of the next number.
    /// Rule FI-3.
    function testEnvelopeNeedsTheEpochToLast() public {
        deployContracts();
        registerEpoch(79_201, 4, 3);
        registerEpoch(200_000, 4, 3);
        bytes memory item = filled(639, 0x02);
        forceEnvelope(639);
        postRun(run(1));
        forceEnvelope(639);
        postRun(run(1));
        expectRefusal(0, 0, item, abi.encodeWithSelector(ForcedQueue.EpochEndsTooSoon.selector, 2, 79_201));
        forceTransaction(639, 21_000); // a transaction is of no epoch
    }

    /// @dev An announced end is kept free of envelopes for as many blocks as a regular one: 300, the greatest age of an
    /// origin and half an hour (FI-3).
    function testEnvelopeNeedsAnAnnouncedEndToBeFar() public {
        registerEpoch(2 * EPOCH_LAST, 4, 3);
        BatchHeader[] memory head = run(1);
        postRun(head);
        bytes memory item = filled(639, 0x02);
        vm.prank(GOVERNOR);
        registry.announceEnd();
        (,, uint64 until,) = registry.ending();
        pass(until - 1_650 - block.number);
        forceEnvelope(639);
        bytes memory reason = abi.encodeWithSignature("EpochEndAnnounced(uint64)", until);
        pass(1);
        expectRefusal(0, 0, item, reason);
        forceTransaction(639, 21_000); // a transaction is of no epoch
        pass(until + 1 - block.number);
        expectRefusal(0, 0, item, reason);
        uint256 snapshot = vm.snapshotState();
        vm.prank(GOVERNOR);
        registry.takeBackEnd();
        forceEnvelope(639);
        vm.revertToState(snapshot);
        inbox.postL1Header(head[0]);
        forceEnvelope(639); // of the next epoch
    }

    /// @dev A committee that is back takes envelopes again, whatever was announced of it.
    function testEnvelopeForACommitteeThatIsBack() public {
        postRun(run(1));
        pass(POSTING_DEADLINE + 1);
        vm.prank(GOVERNOR);
        registry.announceSilence();
        pass(ANSWER_WINDOW);
        bytes memory reason = abi.encodeWithSignature("EpochEndAnnounced(uint64)", uint64(block.number));
        expectRefusal(0, 0, filled(639, 0x02), reason);
        postRun(run(1));
        forceEnvelope(639);
        pass(1);
        forceEnvelope(639);
    }

    function testEnvelopeAtAnEpochsEnd() public {
        deployContracts();
        registerEpoch(2, 4, 3);
        bytes memory item = filled(639, 0x02);
        postRun(run(2));
        expectRefusal(0, 0, item, abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registerEpoch(2 + 79_200, 4, 3); // the next number is of this one
        forceEnvelope(639);
    }

    function testCollect() public {
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.NothingToCollect.selector));
        queue.collect();
        forceTransaction(100, 21_000);
        forceTransaction(200, 21_000);
        address sequencer = inbox.sequencer();
        uint256 burnt = address(queue).balance - 300 * FEE_PER_BYTE;
        check(burnt > 2 * 21_000 * uint256(MIN_GAS_PRICE), "the second one's gas costs more");
        uint256 before = address(0).balance;
        vm.expectEmit(true, true, true, true, address(queue));
        emit Collected(sequencer, 300 * FEE_PER_BYTE, burnt);
        queue.collect();
        checkEqual(sequencer.balance, 300 * FEE_PER_BYTE, "collected");
        checkEqual(address(0).balance - before, burnt, "burnt");
        checkEqual(address(queue).balance, 0, "left");
        // Short, and with much gas: more is burnt than collected.
        uint256 fee = queue.feeOf(10_000_000, 1);
        forceTransaction(1, 10_000_000);
        before = address(0).balance;
        queue.collect();
        checkEqual(sequencer.balance, 301 * FEE_PER_BYTE, "collected again");
        checkEqual(address(0).balance - before, fee - FEE_PER_BYTE, "burnt again");
        forceTransaction(100, 21_000);
        vm.etch(sequencer, hex"fe");
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.TransferFailed.selector, sequencer));
        queue.collect();
    }

    // The price of reserved gas

    /// @dev 16 items of one byte took most of a second's gas for 1,600 gwei, second after second. Their gas costs now,
    /// more with each of them (FI-6).
    function testReservedGasIsPaidFor() public {
        uint256 before = address(this).balance;
        uint256 least = 16 * 10_000_000 * uint256(MIN_GAS_PRICE);
        for (uint256 i = 0; i < 16; i++) {
            queue.force{ value: 10 ether }(1, 10_000_000, hex"00");
        }
        uint256 paid = before - address(this).balance;
        check(10 * paid > 29 * least && paid < 4 * least, "the sixteenth is six times as dear as the first");
        // The same again, for a second second, a third and a fourth.
        for (uint256 i = 0; i < 48; i++) {
            queue.force{ value: 10 ether }(1, 10_000_000, hex"00");
        }
        paid = before - address(this).balance;
        check(paid > 1_000 * least, "the price rises by e in eight items");
    }

    function testThePriceFallsBack() public {
        for (uint256 i = 0; i < 9; i++) {
            forceTransaction(1, 10_000_000);
        }
        // 90 million above the target: e^(9/8), and eight million for each block less.
        uint256 price = queue.gasPriceWei();
        check(price > 3.08 * 0.01 gwei && price < 3.081 * 0.01 gwei, "e^(9/8)");
        vm.roll(block.number + 1);
        price = queue.gasPriceWei();
        check(price > 2.718 * 0.01 gwei && price < 2.719 * 0.01 gwei, "e");
        vm.roll(block.number + 8);
        checkEqual(queue.gasPriceWei(), MIN_GAS_PRICE, "the least");
        vm.roll(block.number + 1_000_000);
        checkEqual(queue.gasPriceWei(), MIN_GAS_PRICE, "no credit for quiet times");
        forceTransaction(1, 10_000_000);
        check(queue.gasPriceWei() > MIN_GAS_PRICE, "rises at once");
    }

    /// @dev After 80 times the gas of one e-fold nobody pays it anyway; it stays a number, and the queue open.
    function testThePriceHasAnEnd() public {
        vm.deal(address(this), type(uint128).max * uint256(type(uint64).max));
        uint256 price;
        for (uint256 i = 0; i < 650; i++) {
            price = queue.gasPriceWei();
            queue.force{ value: queue.feeOf(10_000_000, 1) }(1, 10_000_000, hex"00");
        }
        checkEqual(queue.gasPriceWei(), price, "the end");
        check(price / MIN_GAS_PRICE > 5.5e34 && price / MIN_GAS_PRICE < 5.6e34, "e^80");
        vm.roll(block.number + 650);
        checkEqual(queue.gasPriceWei(), MIN_GAS_PRICE, "and falls back");
    }

    /// @dev An envelope reserves what its header names; without bound, so a price without bound must be well defined.
    function naming(uint64 gas) private pure returns (bytes memory item) {
        item = filled(700, 0x02);
        for (uint256 i = 0; i < 8; i++) {
            item[ENVELOPE_GAS_OFFSET + i] = bytes8(gas)[i];
        }
    }

    function testAnEnvelopePaysForTheGasItNames() public {
        uint64 gas = queue.MAX_GAS_LIMIT();
        bytes memory item = naming(gas);
        uint256 fee = queue.feeOf(gas, 700);
        checkEqual(fee, 700 * uint256(FEE_PER_BYTE) + uint256(gas) * MIN_GAS_PRICE, "fee");
        vm.deal(address(this), fee);
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.FeeTooLow.selector, fee - 1, fee));
        queue.force{ value: fee - 1 }(0, 0, item);
        queue.force{ value: fee }(0, 0, item);
        check(queue.gasPriceWei() > MIN_GAS_PRICE, "the next pays more");
        check(queue.feeOf(type(uint64).max, 33_134) > 0, "and no overflow");
        vm.roll(block.number + (1 << 42));
        checkEqual(queue.gasPriceWei(), MIN_GAS_PRICE, "falls back in the end");
    }

    /// @dev A step of any size was sold at the price of its beginning: for an ether the queue was closed for days.
    function testOneEnvelopeCannotShutTheQueue() public {
        uint64 most = queue.MAX_GAS_LIMIT();
        bytes memory item = naming(100_000_000_000);
        vm.deal(address(this), 2 ether);
        vm.expectRevert(
            abi.encodeWithSelector(ForcedQueue.BadGasLimit.selector, uint64(100_000_000_000), uint64(0), most)
        );
        queue.force{ value: 2 ether }(0, 0, item);
        item = naming(most + 1);
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.BadGasLimit.selector, most + 1, uint64(0), most));
        queue.force{ value: 2 ether }(0, 0, item);
        uint256 before = queue.gasPriceWei();
        queue.force{ value: 2 ether }(0, 0, naming(most));
        check(queue.gasPriceWei() * 7 < before * 8, "an eighth a step at most");
    }

    /// @dev A sender that cannot take back what is above the fee sends just the fee.
    function testAnExactFeeNeedsNoRefund() public {
        Unpayable sender = new Unpayable();
        uint256 fee = queue.feeOf(21_000, 1);
        vm.deal(address(sender), 2 * fee + 1);
        vm.prank(address(sender));
        vm.expectRevert(abi.encodeWithSelector(ForcedQueue.TransferFailed.selector, address(sender)));
        queue.force{ value: fee + 1 }(1, 21_000, hex"00");
        vm.prank(address(sender));
        queue.force{ value: fee }(1, 21_000, hex"00");
    }
}
