// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { GtFrobenius } from "./GtFrobenius.sol";
import { GtProduct } from "./GtProduct.sol";
import { GtResidues, THREE_0, THREE_1, THREE_2 } from "./GtResidues.sol";
import { GtSquare } from "./GtSquare.sol";

/// @title Powers in GT
/// @notice The exponent is written in base |x| = 0xd201000000010000: four digits below 2^64, one for each power of ψ
/// (`GtFrobenius`; Galbraith, Lin and Scott, ePrint 2008/194, and Galbraith and Scott, ePrint 2008/117). Each digit is
/// recoded with a signed window of five bits (digits ±1, ±3 … ±15, one in six places on average); an inverse in GT is
/// a conjugate.
///
/// For a random exponent: 63 squares (8,420 gas each), 43 products and 8 for the table of odd powers (13,170), and on
/// average 18 images of its entries, only those that the digits ask for (8,100 with their preparation).
///
/// Time and memory depend on base and exponent: nothing here is secret.
/// @dev Compared by count and not taken: one joint table of 15 entries with 60 products;
/// windows of four bits (52 products, 12 images); joint windows of two bits in all four digits, modulo the twelve units
/// ±ψ^j (31 products, but 19 for the table); compressed squares (Karabina), since every second place has a product;
/// tori (half the cost of a product, but squares twice as dear).
library GtPower {
    /// @dev |x|.
    uint256 private constant BASE = 0xd201000000010000;
    /// @dev Odd powers of the base in the table, and bytes of an entry.
    uint256 private constant ENTRIES = 8;
    uint256 private constant ENTRY_BYTES = 0x480;
    /// @dev Places of a recoded digit.
    uint256 private constant PLACES = 66;

    /// @notice z^k for the element z of GT that A holds (`GtResidues.load`), encoded in 576 bytes.
    /// @dev `k` below |x|^4, hence any k < r. About 1.44 million gas for a random k, 1.60 for the fullest.
    function power(uint256 k) internal pure returns (bytes memory) {
        table();
        GtFrobenius.constants();
        recode(k);
        bool started = false;
        // No sum here comes near 2^256.
        unchecked {
            for (uint256 place = PLACES; place != 0;) {
                place--;
                if (started) GtSquare.square();
                uint256 digits;
                assembly ("memory-safe") {
                    digits := mload(add(0x2680, shl(5, place)))
                }
                // A byte for each power of ψ: 0x80, 0x40 for minus, index of the odd power.
                for (uint256 entry = 0; digits != 0; entry += ENTRIES) {
                    uint256 digit = digits & 0xff;
                    digits >>= 8;
                    if (digit == 0) continue;
                    fetch(entry + (digit & 7));
                    if (digit & 0x40 != 0) GtProduct.conjugate();
                    if (started) {
                        GtProduct.multiply();
                    } else {
                        GtProduct.start();
                        started = true;
                    }
                }
            }
        }
        if (!started) one();
        return GtResidues.encodeThird();
    }

    /// @dev Entries 0 … 7: z, z^3, … z^15, as operands.
    function table() private pure {
        GtProduct.operand(0x2ec0);
        assembly ("memory-safe") {
            mcopy(0x2680, 0x200, 0x480)
        }
        fetch(0);
        GtProduct.multiply();
        GtProduct.operand(0xb00);
        assembly ("memory-safe") {
            mcopy(0x200, 0x2680, 0x480)
        }
        for (uint256 i = 1; i < ENTRIES; i++) {
            GtProduct.multiply();
            GtProduct.operand(0x2ec0 + i * ENTRY_BYTES);
        }
    }

    /// @dev Writes the digits of k, and makes the images of table entries that they need.
    function recode(uint256 k) private pure {
        assembly ("memory-safe") {
            calldatacopy(0x2680, calldatasize(), 0x840) // zeros
        }
        uint256 made = 0;
        unchecked {
            for (uint256 j = 0; j < 4; j++) {
                uint256 rest = k % BASE;
                k /= BASE;
                uint256 place = 0;
                while (rest != 0) {
                    uint256 digit;
                    assembly ("memory-safe") {
                        let zeros := sub(255, clz(and(rest, sub(0, rest))))
                        rest := shr(zeros, rest)
                        place := add(place, zeros)
                        digit := and(rest, 31)
                        switch gt(digit, 15)
                        case 0 {
                            rest := sub(rest, digit)
                            digit := or(0x80, shr(1, digit))
                        }
                        default {
                            digit := sub(32, digit)
                            rest := add(rest, digit)
                            digit := or(0xc0, shr(1, digit))
                        }
                        let to := add(0x2680, shl(5, place))
                        mstore(to, or(mload(to), shl(shl(3, j), digit)))
                    }
                    uint256 entry = ENTRIES * j + (digit & 7);
                    if (j == 0 || (made >> entry) & 1 == 1) continue;
                    made |= 1 << entry;
                    fetch(digit & 7);
                    GtFrobenius.image(j);
                    GtProduct.operand(0x2ec0 + entry * ENTRY_BYTES);
                }
            }
        }
    }

    /// @dev B ← the table's entry.
    function fetch(uint256 entry) private pure {
        assembly ("memory-safe") {
            mcopy(0xb00, add(0x2ec0, mul(entry, ENTRY_BYTES)), ENTRY_BYTES)
        }
    }

    /// @dev A ← three times the identity.
    function one() private pure {
        assembly ("memory-safe") {
            calldatacopy(0x200, calldatasize(), 0x480) // zeros
            mstore(0x200, THREE_0)
            mstore(0x380, THREE_1)
            mstore(0x500, THREE_2)
        }
    }
}
