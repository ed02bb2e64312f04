// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import "../src/libraries/GtResidues.sol";
import "../src/libraries/GtSquare.sol";
import {
    HALF_1,
    HALF_2,
    HALF_ROOT_1,
    HALF_ROOT_2,
    ROOT_1,
    ROOT_2,
    XI_MINUS_1,
    XI_MINUS_2,
    XI_PLUS_1,
    XI_PLUS_2
} from "../src/libraries/GtProduct.sol";
import { SlowField } from "./helpers/SlowField.sol";
import { Test } from "./helpers/Test.sol";

/// @notice Every constant of the arithmetic from its definition. Those of the Frobenius map: `GtTest.testFrobenius`.
contract GtConstantsTest is Test {
    /// @dev 2^256 mod M2.
    uint256 internal constant TWO_256 = type(uint256).max - M2 + 1;

    /// @dev 2^(256·n) mod M2.
    function power2(uint256 n) internal pure returns (uint256 result) {
        result = 1;
        for (uint256 i = 0; i < n; i++) {
            result = mulmod(result, TWO_256, M2);
        }
    }

    /// @dev The number that the three residues stand for.
    function number(uint256 c0, uint256 c1, uint256 c2) internal pure returns (SlowField.Fp memory c) {
        c.low = c0;
        c.high = addmod(c1, M1 - c0 % M1, M1);
        check(c.high < P_HIGH || (c.high == P_HIGH && c0 < P_LOW), "below p");
        check(c1 < M1, "canonical modulo M1");
        uint256 scaled = addmod(mulmod(c0, SCALE_LOW, M2), mulmod(c.high, SCALE_HIGH, M2), M2);
        checkEqual(c2, scaled, "canonical modulo M2");
    }

    function checkNumber(SlowField.Fp memory given, SlowField.Fp memory expected, string memory what)
        internal
        pure
    {
        checkEqual(given.high, expected.high, what);
        checkEqual(given.low, expected.low, what);
    }

    function testModuli() public pure {
        checkEqual(M1, type(uint256).max / 3, "M1");
        checkEqual(type(uint256).max % 3, 0, "M1 is whole");
        checkEqual(M2, 7 * 2 ** 253 - 543, "M2");
        checkEqual(P_HIGH, SlowField.P_HIGH, "p");
        checkEqual(P_LOW, SlowField.P_LOW, "p");
    }

    /// @dev M2 has a common factor neither with M1 nor with 2^256: they have inverses modulo M2.
    function testReduction() public pure {
        unchecked {
            checkEqual(NEGATED_INVERSE * P_LOW, type(uint256).max, "-1/p");
            checkEqual(M1_NEGATED_INVERSE, M1 * NEGATED_INVERSE, "-M1/p");
        }
        checkEqual(P_1, addmod(P_LOW, P_HIGH, M1), "p mod M1");
        uint256 p = addmod(P_LOW, mulmod(P_HIGH, TWO_256, M2), M2);
        checkEqual(mulmod(P_2A, power2(4), M2), p, "2^-1024 p");
        checkEqual(mulmod(P_2B, power2(3), M2), p, "2^-768 p");
        checkEqual(mulmod(LIFT_1, M1, M2), M2 - 1, "-1/M1");
        checkEqual(mulmod(LIFT_U, M1, M2), power2(3), "2^768/M1");
        checkEqual(mulmod(LIFT_V, M1, M2), power2(2), "2^512/M1");
        checkEqual(mulmod(SCALE_LOW, power2(2), M2), 1, "2^-512");
        checkEqual(mulmod(SCALE_HIGH, power2(1), M2), 1, "2^-256");
    }

    /// @dev OFFSET = p·M1·s for an s that makes it between 12.4 p² and 12.6 p².
    function testOffset() public pure {
        uint256 s;
        unchecked {
            s = 3 * NEGATED_INVERSE * OFFSET_0; // 1/M1 = −3 modulo 2^256
        }
        (, uint256 high) = SlowField.wide(s, M1);
        check(10 * high > 124 * P_HIGH && 10 * high < 126 * P_HIGH, "size");
        uint256 p = addmod(P_LOW, mulmod(P_HIGH, TWO_256, M2), M2);
        checkEqual(mulmod(OFFSET_2, power2(4), M2), mulmod(mulmod(p, M1, M2), s, M2), "modulo M2");
        check(OFFSET_2 <= type(uint256).max - M2, "added without a reduction");
    }

    function testNumbers() public view {
        SlowField.Fp memory r = SlowField.modulo(abi.encodePacked(uint256(1), uint256(0), uint256(0)));
        SlowField.Fp memory twice = SlowField.add(r, r);
        checkNumber(number(R2_0, R2_1, R2_2), SlowField.mul(r, r), "2^1024");
        checkNumber(number(THREE_0, THREE_1, THREE_2), SlowField.add(twice, r), "3 * 2^512");
        checkNumber(number(LIFT_PLUS_0, LIFT_PLUS_1, LIFT_PLUS_2), twice, "2 * 2^512");
        checkNumber(number(LIFT_MINUS_0, LIFT_MINUS_1, LIFT_MINUS_2), SlowField.negate(twice), "-2 * 2^512");
        SlowField.Fp memory third = number(THIRD_0, THIRD_1, THIRD_2);
        checkNumber(
            SlowField.add(SlowField.add(third, third), third), SlowField.Fp({ high: 0, low: 1 }), "1/3"
        );
    }

    function testRoots() public pure {
        checkEqual(mulmod(ROOT_1, ROOT_1, M1), M1 - 1, "i^2 modulo M1");
        checkEqual(mulmod(ROOT_2, ROOT_2, M2), M2 - 1, "i^2 modulo M2");
        checkEqual(NEGATED_ROOT_1, M1 - ROOT_1, "-i modulo M1");
        checkEqual(NEGATED_ROOT_2, M2 - ROOT_2, "-i modulo M2");
        checkEqual(XI_PLUS_1, ROOT_1 + 1, "1 + i modulo M1");
        checkEqual(XI_PLUS_2, ROOT_2 + 1, "1 + i modulo M2");
        checkEqual(XI_MINUS_1, M1 + 1 - ROOT_1, "1 - i modulo M1");
        checkEqual(XI_MINUS_2, M2 + 1 - ROOT_2, "1 - i modulo M2");
        checkEqual(mulmod(HALF_1, 2, M1), 1, "1/2 modulo M1");
        checkEqual(mulmod(HALF_2, 2, M2), 1, "1/2 modulo M2");
        checkEqual(mulmod(HALF_ROOT_1, 2, M1), ROOT_1, "i/2 modulo M1");
        checkEqual(mulmod(HALF_ROOT_2, 2, M2), ROOT_2, "i/2 modulo M2");
    }
}
