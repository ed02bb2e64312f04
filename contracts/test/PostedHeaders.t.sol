// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { PostedHeaders } from "../src/PostedHeaders.sol";
import { Timing } from "../src/interfaces/IBlindedInbox.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Has the headers made by L1 that it is told of.
contract HeadersMade is PostedHeaders {
    constructor(Timing memory timing_) PostedHeaders(timing_) { }

    function add(uint64 number, uint64 madeAt) external {
        l1Made.push(L1Made({ number: number, madeAt: madeAt }));
    }

    function between(uint64 above, uint64 upTo) external view returns (bool) {
        return l1MadeBetween(above, upTo);
    }

    function sequencer() external pure override returns (address) {
        return address(0);
    }

    function slashedAt(address) external pure override returns (uint64) {
        return 0;
    }
}

/// @dev The searches among the headers that L1 made, against looking at each of them.
contract PostedHeadersTest is Test {
    uint64 internal constant END = 40;

    uint64[] internal numbers;
    uint64[] internal blocks;

    function contractWith(uint256 count, uint256 seed) internal returns (HeadersMade made) {
        made = new HeadersMade(Timing(20, 10, 5, 5, 5, 30, 60));
        (uint64 number, uint64 madeAt) = (0, 0);
        for (uint256 i = 0; i < count; i++) {
            // Both rise; by how much is three bits of the seed.
            number += 1 + uint64(seed >> (6 * i)) % 8;
            madeAt += 1 + uint64(seed >> (6 * i + 3)) % 8;
            numbers.push(number);
            blocks.push(madeAt);
            made.add(number, madeAt);
        }
        checkEqual(made.l1MadeCount(), count, "count");
    }

    function testFuzzBetween(uint8 count, uint256 seed) public {
        HeadersMade made = contractWith(count % 9, seed);
        for (uint64 above = 0; above < END; above++) {
            for (uint64 width = 0; width < 6; width++) {
                bool expected = false;
                for (uint256 i = 0; i < numbers.length; i++) {
                    if (numbers[i] > above && numbers[i] <= above + width) expected = true;
                }
                check(made.between(above, above + width) == expected, "between");
            }
        }
    }

    function testFuzzLastBelow(uint8 count, uint256 seed) public {
        HeadersMade made = contractWith(count % 9, seed);
        for (uint64 number = 0; number < END; number++) {
            uint64 expected = 0;
            for (uint256 i = 0; i < numbers.length; i++) {
                if (numbers[i] < number) expected = blocks[i];
            }
            checkEqual(made.lastMadeBelow(number), expected, "last below");
        }
    }

    /// @dev What counts is the first that L1 made after the earlier origin.
    function testFuzzBelow(uint8 count, uint256 seed, uint64 number) public {
        number %= END;
        HeadersMade made = contractWith(count % 9, seed);
        for (uint64 origin = 0; origin < END; origin++) {
            for (uint64 width = 0; width < 6; width++) {
                bool expected = false;
                for (uint256 i = 0; i < numbers.length; i++) {
                    if (blocks[i] <= origin) continue;
                    expected = blocks[i] <= origin + width && numbers[i] < number;
                    break;
                }
                check(made.l1MadeBelow(number, origin, origin + width) == expected, "below");
            }
        }
    }
}
