// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { OutputRegistry } from "../src/OutputRegistry.sol";
import { Timing } from "../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { MockInbox } from "./helpers/MockInbox.sol";
import { Test } from "./helpers/Test.sol";

/// @dev A registry with an inbox whose head moves by one header a call.
abstract contract OutputDeployment is Test {
    address internal constant SEQUENCER = address(0x5e9);

    MockInbox internal inbox;
    OutputRegistry internal outputs;

    function deployContracts() internal {
        Timing memory timing;
        timing.postingDeadline = 100;
        inbox = new MockInbox(SEQUENCER, timing);
        outputs = new OutputRegistry(inbox);
    }

    /// @dev Posts one header with the given time.
    function post(uint64 timestampMs) internal {
        (uint64 number,,,) = inbox.head();
        BatchHeader[] memory headers = new BatchHeader[](1);
        headers[0].number = number + 1;
        headers[0].parentHash = inbox.headHash();
        headers[0].timestampMs = timestampMs;
        inbox.post(headers);
    }

    function example(uint64 l2Block, uint64 batch, uint64 timestamp)
        internal
        pure
        returns (OutputRegistry.Output memory)
    {
        return OutputRegistry.Output({
            l2Block: l2Block,
            batch: batch,
            timestamp: timestamp,
            blockHash: keccak256(abi.encode("block", l2Block, timestamp)),
            stateRoot: keccak256(abi.encode("state", l2Block, batch))
        });
    }
}

/// @dev Posts batches and proposes outputs, good ones and others, and remembers what was accepted.
contract OutputRegistryHandler is OutputDeployment {
    OutputRegistry.Output[] private accepted;
    bytes[] private proposals;
    uint64 private time = 1_800_000_000_000;

    constructor() {
        deployContracts();
    }

    function theRegistry() external view returns (OutputRegistry) {
        return outputs;
    }

    function count() external view returns (uint256) {
        return accepted.length;
    }

    function acceptedAt(uint256 position) external view returns (OutputRegistry.Output memory) {
        return accepted[position];
    }

    function proposalCount() external view returns (uint256) {
        return proposals.length;
    }

    function proposalAt(uint256 position) external view returns (OutputRegistry.Output[] memory) {
        return abi.decode(proposals[position], (OutputRegistry.Output[]));
    }

    function postBatch(uint256 milliseconds) external {
        time += uint64(bound(milliseconds, 1, 9_000));
        post(time);
    }

    function propose(uint256 count_, uint256 batch, uint256 back, uint256 skip) external {
        count_ = bound(count_, 0, 3);
        (uint64 head, uint64 headMs,,) = inbox.head();
        OutputRegistry.Output[] memory proposed = new OutputRegistry.Output[](count_);
        bytes4 fault = count_ == 0 ? OutputRegistry.EmptyProposal.selector : bytes4(0);
        for (uint256 i = 0; i < count_; i++) {
            // One in eight leaves a gap, goes back, names a batch that is not there, or comes too early.
            uint64 l2Block = uint64(accepted.length + 1 + i + ((skip >> (8 * i)) % 8 == 0 ? 1 : 0));
            if ((skip >> (8 * i)) % 8 == 1) l2Block--;
            uint64 number = uint64(bound(batch >> (8 * i), 0, head + 1));
            uint64 timestamp =
                headMs / 1_000 - uint64(bound(back >> (8 * i), headMs == 0 ? 0 : 9, headMs == 0 ? 0 : 20));
            proposed[i] = example(l2Block, number, timestamp);
            if (fault != 0) continue;
            if (l2Block != accepted.length + 1 + i) fault = OutputRegistry.WrongBlock.selector;
            else if (number == 0 || number > head) fault = OutputRegistry.BatchNotPosted.selector;
            else if ((uint256(timestamp) + 10) * 1_000 > headMs) fault = OutputRegistry.TooEarly.selector;
        }
        bool good = fault == 0;
        if (!good) vm.expectPartialRevert(fault);
        vm.prank(SEQUENCER);
        outputs.propose(proposed);
        for (uint256 i = 0; good && i < count_; i++) {
            accepted.push(proposed[i]);
        }
        if (good) proposals.push(abi.encode(proposed));
    }

    function proposeAsAnother(address caller) external {
        if (caller == SEQUENCER) return;
        vm.expectRevert(abi.encodeWithSelector(OutputRegistry.NotSequencer.selector, caller));
        vm.prank(caller);
        outputs.propose(new OutputRegistry.Output[](1));
    }
}

contract OutputRegistryTest is OutputDeployment {
    uint64 internal constant TIME = 1_800_000_000;

    OutputRegistryHandler internal handler;

    event OutputsProposed(
        uint64 indexed firstBlock,
        uint64 indexed lastBlock,
        uint64 previousAt,
        OutputRegistry.Output[] outputs
    );

    function setUp() public {
        handler = new OutputRegistryHandler();
        deployContracts();
        post(TIME * 1_000 + 250);
        post((TIME + 11) * 1_000);
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function proposing(OutputRegistry.Output memory output)
        internal
        pure
        returns (OutputRegistry.Output[] memory proposed)
    {
        proposed = new OutputRegistry.Output[](1);
        proposed[0] = output;
    }

    function propose(OutputRegistry.Output[] memory proposed) internal {
        vm.prank(SEQUENCER);
        outputs.propose(proposed);
    }

    function refuses(OutputRegistry.Output memory output, bytes memory reason) internal {
        vm.expectRevert(reason);
        propose(proposing(output));
    }

    function testProposeInOrder() public {
        OutputRegistry.Output[] memory two = new OutputRegistry.Output[](2);
        two[0] = example(1, 1, TIME);
        two[1] = example(2, 2, TIME + 1);
        vm.expectEmit(true, true, true, true, address(outputs));
        emit OutputsProposed(1, 2, 0, two);
        propose(two);
        checkEqual(outputs.lastProposedAt(), block.number, "block");
        checkEqual(outputs.lastBlock(), 2, "last");
        check(outputs.isProposed(two), "proposed");
        check(!outputs.isProposed(proposing(two[1])), "not by itself");
        check(!outputs.isProposed(new OutputRegistry.Output[](0)), "nothing");
        checkEqual(outputs.commitments(2), keccak256(abi.encode(two)), "commitment");
        checkEqual(outputs.commitments(1), 0, "one for the whole proposal");
        two[0].stateRoot = 0;
        check(!outputs.isProposed(two), "another");
    }

    function testEachProposalTellsWhereTheOneBeforeIs() public {
        vm.roll(50);
        propose(proposing(example(1, 1, TIME)));
        vm.roll(60);
        vm.expectEmit(true, true, true, true, address(outputs));
        emit OutputsProposed(2, 2, 50, proposing(example(2, 2, TIME)));
        propose(proposing(example(2, 2, TIME)));
        checkEqual(outputs.lastProposedAt(), 60, "block");
    }

    function testOnlyTheSequencer() public {
        vm.expectRevert(abi.encodeWithSelector(OutputRegistry.NotSequencer.selector, address(this)));
        outputs.propose(proposing(example(1, 1, TIME)));
    }

    function testEmptyProposal() public {
        vm.expectRevert(abi.encodeWithSelector(OutputRegistry.EmptyProposal.selector));
        propose(new OutputRegistry.Output[](0));
    }

    function testOutputsAreConsecutiveAndNeverReplaced() public {
        refuses(example(0, 1, TIME), abi.encodeWithSelector(OutputRegistry.WrongBlock.selector, 1, 0));
        refuses(example(2, 1, TIME), abi.encodeWithSelector(OutputRegistry.WrongBlock.selector, 1, 2));
        propose(proposing(example(1, 1, TIME)));
        refuses(example(1, 1, TIME - 1), abi.encodeWithSelector(OutputRegistry.WrongBlock.selector, 2, 1));
        check(outputs.isProposed(proposing(example(1, 1, TIME))), "stands");
    }

    function testTheBatchIsPosted() public {
        refuses(example(1, 0, TIME), abi.encodeWithSelector(OutputRegistry.BatchNotPosted.selector, 0, 2));
        refuses(example(1, 3, TIME), abi.encodeWithSelector(OutputRegistry.BatchNotPosted.selector, 3, 2));
        propose(proposing(example(1, 2, TIME)));
    }

    function testTheHeadIsTenSecondsLater() public {
        uint64 headMs = (TIME + 11) * 1_000;
        refuses(
            example(1, 1, TIME + 2),
            abi.encodeWithSelector(OutputRegistry.TooEarly.selector, 1, headMs + 1_000, headMs)
        );
        refuses(
            example(1, 1, type(uint64).max),
            abi.encodeWithSelector(
                OutputRegistry.TooEarly.selector, 1, (uint256(type(uint64).max) + 10) * 1_000, headMs
            )
        );
        propose(proposing(example(1, 1, TIME + 1)));
        post(headMs + 999);
        refuses(
            example(2, 3, TIME + 2),
            abi.encodeWithSelector(OutputRegistry.TooEarly.selector, 2, headMs + 1_000, headMs + 999)
        );
    }

    function testOneBadOutputRefusesAll() public {
        OutputRegistry.Output[] memory two = new OutputRegistry.Output[](2);
        two[0] = example(1, 1, TIME);
        two[1] = example(2, 3, TIME + 1);
        vm.expectRevert(abi.encodeWithSelector(OutputRegistry.BatchNotPosted.selector, 3, 2));
        propose(two);
        checkEqual(outputs.lastBlock(), 0, "last");
    }

    function testFuzzProposals(uint256 count, uint256 size) public {
        count = bound(count, 1, 30);
        size = bound(size, 1, 7);
        uint64 next = 1;
        while (next <= count) {
            OutputRegistry.Output[] memory proposed = new OutputRegistry.Output[](size);
            for (uint64 i = 0; i < size; i++) {
                proposed[i] = example(next + i, 1 + (next + i) % 2, TIME - 100 + next + i);
            }
            propose(proposed);
            check(outputs.isProposed(proposed), "proposed");
            next += uint64(size);
        }
        checkEqual(outputs.lastBlock(), next - 1, "last");
    }

    // Invariants

    function invariantOutputsStandAsTheyWereAcceptedInOrder() public view {
        OutputRegistry registry = handler.theRegistry();
        uint256 count = handler.count();
        checkEqual(registry.lastBlock(), count, "last");
        for (uint64 l2Block = 1; l2Block <= count; l2Block++) {
            checkEqual(handler.acceptedAt(l2Block - 1).l2Block, l2Block, "in order");
        }
        for (uint256 i = 0; i < handler.proposalCount(); i++) {
            check(registry.isProposed(handler.proposalAt(i)), "stands as it was accepted");
        }
        checkEqual(registry.commitments(uint64(count) + 1), 0, "no more");
    }

    // Gas; 21,000 and the calldata come on top

    function outputsFrom(uint64 first, uint64 count)
        internal
        pure
        returns (OutputRegistry.Output[] memory proposed)
    {
        proposed = new OutputRegistry.Output[](count);
        for (uint64 i = 0; i < count; i++) {
            proposed[i] = example(first + i, 1, TIME - 100 + i);
        }
    }

    function testGasOfOne() public {
        propose(outputsFrom(1, 1));
        OutputRegistry.Output[] memory proposed = outputsFrom(2, 1);
        vm.cool(address(outputs));
        vm.cool(address(inbox));
        propose(proposed);
        vm.snapshotGasLastCall("OutputRegistry.propose, 1 output");
    }

    function testGasOfTen() public {
        propose(outputsFrom(1, 1));
        OutputRegistry.Output[] memory proposed = outputsFrom(2, 10);
        vm.cool(address(outputs));
        vm.cool(address(inbox));
        propose(proposed);
        vm.snapshotGasLastCall("OutputRegistry.propose, 10 outputs");
    }
}
