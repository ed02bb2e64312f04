// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @notice What the inbox asks of headers about the forced queue.
contract ForcedItemsTest is Deployment {
    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
    }

    function testForcedItemsMustBeTakenWhenDue() public {
        uint64 enqueuedAt = uint64(block.number);
        forceTransaction(100, 100_000);
        pass(FORCED_DELAY + FINALITY);
        BatchHeader[] memory headers = run(1);
        checkEqual(headers[0].l1OriginNumber, enqueuedAt + FORCED_DELAY, "origin");
        checkEqual(headers[0].forcedCursor, 1, "run takes it");
        headers[0].forcedCursor = 0;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedItemIgnored.selector, 1, 0));
        headers[0].l1OriginNumber -= 1; // not due yet
        postRun(headers);
        // The second header of a run is looked at too, and what an earlier one took counts for it.
        headers = run(2);
        checkEqual(headers[0].forcedCursor, 1, "taken");
        postRun(headers);
        (,,, uint64 cursor) = inbox.head();
        checkEqual(cursor, 1, "cursor");
    }

    /// @dev Each header of a run is judged by the entry that it leaves, not by one that an earlier header left.
    function testEveryHeaderIsJudgedByTheEntryItLeaves() public {
        uint64 enqueuedAt = uint64(block.number);
        for (uint256 i = 0; i < 3; i++) {
            forceTransaction(100, 100_000);
            pass(10);
        }
        pass(FORCED_DELAY);
        BatchHeader[] memory headers = run(2);
        headers[0].l1OriginNumber = enqueuedAt + FORCED_DELAY + 5;
        headers[0].forcedCursor = 1;
        headers[1].forcedCursor = 2;
        for (uint64 late = 2; late > 0; late--) {
            headers[1].l1OriginNumber = enqueuedAt + FORCED_DELAY + 19 + late;
            relink(headers);
            expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedItemIgnored.selector, 2, 2));
        }
        headers[1].l1OriginNumber -= 1;
        relink(headers);
        postRun(headers);
    }

    function testCursorRules() public {
        for (uint256 i = 0; i < 20; i++) {
            forceTransaction(100, 100_000);
        }
        BatchHeader[] memory headers = run(2);
        headers[0].forcedCursor = 17;
        relink(headers);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedCapExceeded.selector, 1, 17));
        headers[0].forcedCursor = 5;
        headers[1].forcedCursor = 4;
        relink(headers);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedCursorDecreasing.selector, 2));
        headers[1].forcedCursor = 21;
        relink(headers);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedCursorAhead.selector, 21, 20));
        headers[1].forcedCursor = 20;
        relink(headers);
        postRun(headers);
        headers = run(1);
        headers[0].forcedCursor = 19;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedCursorDecreasing.selector, 3));
    }

    /// @dev A header may leave due entries only if it took as many as a header can.
    function testFuzzForcedItems(uint256 waiting, uint256 taken, uint256 due) public {
        waiting = bound(waiting, 1, 20);
        due = bound(due, 0, waiting);
        taken = bound(taken, 0, 16);
        for (uint256 i = 0; i < waiting; i++) {
            if (i == due) pass(1);
            forceTransaction(100, 100_000);
        }
        if (due == waiting) pass(1);
        pass(FORCED_DELAY);
        BatchHeader[] memory headers = run(1);
        headers[0].l1OriginNumber = uint64(block.number) - 1;
        headers[0].forcedCursor = uint64(taken);
        if (taken > waiting) {
            expectPostRefusal(
                headers, abi.encodeWithSelector(BlindedInbox.ForcedCursorAhead.selector, taken, waiting)
            );
        } else if (taken < due && taken < 16) {
            expectPostRefusal(
                headers, abi.encodeWithSelector(BlindedInbox.ForcedItemIgnored.selector, 1, taken)
            );
        } else {
            postRun(headers);
        }
    }
}
