// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { GtFrobenius } from "./GtFrobenius.sol";
import { GtPower } from "./GtPower.sol";
import { GtProduct } from "./GtProduct.sol";
import { GtResidues } from "./GtResidues.sol";

/// @title Whether an element of F_p12 lies in GT
/// @notice z ≠ 0 lies in GT iff z^(p^4)·z = z^(p^2) (then it is of the cyclotomic subgroup, whose order is
/// p^4 − p^2 + 1) and z^p = z^x, x = −0xd201000000010000 (Scott, ePrint 2021/1130: gcd(p − x, p^4 − p^2 + 1) = r).
/// With ψ the conjugate of the Frobenius map, so that ψ² is the p²-th power, and z̄ = 1/z in the cyclotomic subgroup,
/// the first is ψ²(ψ²(z))·z = ψ²(z), and the second ψ(z)·z̄ = z^(|x| − 1). That exponent has a single digit in base |x|,
/// so `GtPower` raises to it without the law that is to be checked.
library GtMembership {
    /// @dev |x| − 1.
    uint256 private constant EXPONENT = 0xd20100000000ffff;
    /// @dev Where z and an image of it stand as operands, in the table of `GtPower`, and their length.
    uint256 private constant Z = 0x2ec0;
    uint256 private constant IMAGE = 0x3340;
    uint256 private constant OPERAND_BYTES = 0x480;

    /// @notice Whether the 576 bytes encode an element of GT; the identity is one. Reverts when a coefficient is not
    /// below p. About 0.8 million gas. The arithmetic's memory is reserved (`GtResidues.reserve`).
    function contains(bytes calldata encoded) internal pure returns (bool) {
        GtFrobenius.constants();
        GtResidues.load(encoded);
        GtProduct.operand(Z);
        // Both sides as a third of what A holds (`GtResidues.encodeThird`), which decides as well.
        fetch(Z);
        GtFrobenius.image(2);
        GtProduct.operand(IMAGE);
        bytes memory right = GtResidues.encodeThird();
        fetch(IMAGE);
        GtFrobenius.image(2);
        fetch(Z);
        GtProduct.multiply();
        bytes memory left = GtResidues.encodeThird();
        // Zero passes this, and only zero is encoded in zeros.
        if (keccak256(left) != keccak256(right) || keccak256(right) == keccak256(new bytes(576))) {
            return false;
        }

        fetch(Z);
        GtFrobenius.image(1);
        GtProduct.operand(IMAGE);
        fetch(Z);
        GtProduct.conjugate();
        GtProduct.start(); // A is three times z̄
        fetch(IMAGE);
        GtProduct.multiply();
        right = GtResidues.encodeThird();
        GtResidues.load(encoded);
        left = GtPower.power(EXPONENT);
        return keccak256(left) == keccak256(right);
    }

    /// @dev B ← the operand at `from`.
    function fetch(uint256 from) private pure {
        assembly ("memory-safe") {
            mcopy(0xb00, from, OPERAND_BYTES)
        }
    }
}
