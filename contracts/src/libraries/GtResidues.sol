// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

// Arithmetic in F_p12 over BLS12-381's field for the EVM, in residues. This file: the representation and the
// reduction modulo p. `GtSquare`, `GtProduct` and `GtFrobenius` compute with it, `GtPower` puts them together.
//
// Why residues. MULMOD multiplies 256 by 256 bits and reduces modulo any number for 8 gas, less than a third of what
// the high word of a product costs by other means. A product of two numbers below p has 762 bits. Kept modulo three
// coprime numbers of 256, 254.4 and 255.8 bits (2^256 itself among them: MUL, 5 gas) it costs three multiplications
// instead of the nine of three limbs, there are no carries, and sums of products (all of one coefficient's in a
// product in F_p12) are added up before one reduction modulo p.
//
//   M0 = 2^256     M1 = (2^256 − 1) / 3     M2 = 7·2^253 − 543, a prime
//
// M1: 2^256 = 1 modulo M1; three numbers below M1 add up to at most 2^256 − 1, so sums need no ADDMOD; and −1 is a
// square (M1 is the product of the Fermat numbers F_1 … F_7), as it is modulo M2: F_p2's u maps to a number there
// (see `GtProduct`).
//
// A number V of 0 ≤ V < 2p is kept as three words
//   v0 = V mod M0     v1 = V mod M1     v2 = 2^−512·V mod M2     (every one of them in 0 … M − 1)
// and the field element is V·2^−512 (Montgomery's form, R = 2^512). The scale of v2 makes the reduction end where it
// starts without another multiplication.
//
// Ranges. Operands are at most p + 2^256. A coefficient of a product is a sum of products T with
// −12.1 p² < T < 12.1 p², one of a square (scaled, see `GtSquare`) has −5 p² < T < 6 p². OFFSET, a multiple of p and
// of M1 between 12.4 p² and 12.6 p², makes it positive; M0·M1·M2 > 27.6 p² holds it.
//
// Written out at length, on purpose: a load from a constant address costs 6 gas, through a pointer 12. One assembly
// block for a statement keeps the optimiser from holding what it loaded on a stack that is too short. The moduli are
// parameters, since the compiler copies a constant that occurs a hundred times from the code, for 36 gas instead of 3.
// (The pipeline through Yul was tried: 37 % more code, and it moves memory that this file counts on.)
//
// Memory, absolute addresses (`reserve` takes 0x200 … ARENA_END for this and refuses where something is there). An
// element is 36 words: twelve for M0, then twelve for M1 and for M2. Element Σ a_k w^k with a_k = x + y·u in F_p2 has
// x at word 2k and y at word 2k + 1; w² = v, so k = 0, 2, 4 are c0.c0, c0.c1, c0.c2 and k = 1, 3, 5 are c1.c0, …
//
//   0x200   A, the accumulator, 36 words
//   0x680   T, sums of products before their reduction, 36 words
//   0xb00   B, the other operand of a product, 36 words (see `GtProduct`)
//   0xf80   A at u = ±√−1 modulo M1 and M2, 24 words
//   0x1280  products at u = −√−1, 6 words
//   0x1580  sums x + y of A and of B modulo M0, 12 words
//   0x1900  Frobenius constants, 108 words
//   0x2680  digits of the exponent, 66 words
//   0x2ec0  table, 32 elements

/// @dev (2^256 − 1) / 3.
uint256 constant M1 = 0x5555555555555555555555555555555555555555555555555555555555555555;
/// @dev 7·2^253 − 543.
uint256 constant M2 = 0xdffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffde1;
/// @dev p mod 2^256.
uint256 constant P_LOW = 0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;
/// @dev p div 2^256.
uint256 constant P_HIGH = 0x1a0111ea397fe69a4b1ba7b6434bacd7;
/// @dev −1/p mod 2^256.
uint256 constant NEGATED_INVERSE = 0x19ecca0e8eb2db4c16ef2ef0c8e30b48286adb92d9d113e889f3fffcfffcfffd;
/// @dev OFFSET mod 2^256.
uint256 constant OFFSET_0 = 0x282844a470081874ed35b3455dda90d2dea000b6a2d13e66d45f32ee8d1be8b7;
/// @dev 2^−1024·OFFSET mod M2; below 2^256 − M2, so it is added without a reduction.
uint256 constant OFFSET_2 = 0x1cec1e9eb8ee1d0f052f128d3bfd952efc035efc4a8dfed86d6fcb90cf60be24;
/// @dev p mod M1.
uint256 constant P_1 = 0xf21f62f9e2fbd6a11db7d4ba15ba0cee357bc93957e9144afc55260edf6022d;
/// @dev 2^−1024·p mod M2.
uint256 constant P_2A = 0xc01945715f3935125cad90006a189d75b1e8a3287936823d585999df269cdb3c;
/// @dev 2^−768·p mod M2.
uint256 constant P_2B = 0x8af97ad3673f8239cde08101303db304fbf0158a67904947500f498350d347d1;
/// @dev −1/M1 mod M2.
uint256 constant LIFT_1 = 0x8bc2d919e9b013d543b43598b3ea0abe2f56f25d61741b27044f189d3f74380d;
/// @dev 2^768/M1 mod M2.
uint256 constant LIFT_U = 0x4b18949cf1bda3062a02a5d502f162f8ac16c47e0c42c046b28c55199c0b250d;
/// @dev 2^512/M1 mod M2.
uint256 constant LIFT_V = 0xb43d26e6164fec2abc4bca674c15f541d0a90da29e8be4d8fbb0e762c08bcc34;
/// @dev −M1/p mod 2^256.
uint256 constant M1_NEGATED_INVERSE = 0x4cb111fb25c461914db045afbd09a6e7f2870c24620fa407d204000100010001;
/// @dev 2^−512 mod M2.
uint256 constant SCALE_LOW = 0x4ff5fce59baaf5208439023a90fb0a2c55891f46d251478e5b901e536fac8c75;
/// @dev 2^−256 mod M2.
uint256 constant SCALE_HIGH = 0x55719ee15afda489aa31f9664e42f253eb4188401e2c511719ee15afda4899d4;
/// @dev −i modulo M1, i² = −1 (see `GtProduct`).
uint256 constant NEGATED_ROOT_1 = 0x3e4d5e2d7e4d1e2dbe4d5e2cfe4d1e2d3e4d5e2d7e4d1e2cbe4d5e2cfe4d1e2d;
/// @dev −i modulo M2.
uint256 constant NEGATED_ROOT_2 = 0x2ab077abc9c9582451ac2dfcb2aea0316b66bcfdebe3df67e65fb37cacef4546;
/// @dev 2^1024 mod p, as a number in residues: into Montgomery's form.
uint256 constant R2_0 = 0xcc0868ce6a76590c76e5bc3ff951c543861c23693de6a351fb73eaead26ebe58;
/// @dev The same modulo M1.
uint256 constant R2_1 = 0x215dbe23bfcbae61cc3b11954ea71a98db82218037d5fef741719a7f5d0880b9;
/// @dev The same modulo M2, scaled.
uint256 constant R2_2 = 0x2deaeae4f1768bee029c7c57aa27f7b73cb1b92f6797ee4126b583ebb68a18d6;
/// @dev 3·2^512 mod p in residues: three times.
uint256 constant THREE_0 = 0x41cfc3217ac4876e86a89195099318d2cf96a8befac0fdebc377ac99f28245d7;
/// @dev The same modulo M1.
uint256 constant THREE_1 = 0x41cfc3217ac4876e86a89195099318d2d7f8c06e93ac023ab39f13b1bd6c8a0b;
/// @dev The same modulo M2, scaled.
uint256 constant THREE_2 = 0xd98367621d0264cbd6a252027f928e4f79eaa89bca11b21d8c26fddcbc557a8d;
/// @dev 1/3 mod p in residues: a third, and out of Montgomery's form.
uint256 constant THIRD_0 = 0x984f87adf7ae0c7f9a208c6b4f20a4181472aaa9cb8d555526a9ffffffffc71d;
/// @dev The same modulo M1.
uint256 constant THIRD_1 = 0x42fa3258a258b72a44cb3715f9cb4ec2d0736145f1e299bc03671a7982323a57;
/// @dev The same modulo M2, scaled.
uint256 constant THIRD_2 = 0x7d11a252a16189078cfbdd5487d8cc352a68e649a3daa8d012a79a83c3d1fc46;
/// @dev End of the memory that this arithmetic uses.
uint256 constant ARENA_END = 0xbec0;

/// @title Residues of numbers modulo p, and their reduction
library GtResidues {
    /// @notice Coefficient `index` of an element, in the order of its encoding, is not below p.
    error CoefficientNotReduced(uint256 index);
    /// @notice The memory that the arithmetic works in is in use: call `reserve` first in an external function.
    error MemoryInUse();

    /// @dev The word of an element at which each of the twelve encoded coefficients stands, a byte each.
    uint256 private constant ORDER = 0x000104050809020306070a0b0000000000000000000000000000000000000000;

    /// @notice Takes the memory from 0x200 to ARENA_END.
    function reserve() internal pure {
        uint256 free;
        assembly ("memory-safe") {
            free := mload(0x40)
        }
        if (free > 0x200) revert MemoryInUse();
        assembly ("memory-safe") {
            mstore(0x40, ARENA_END)
        }
    }

    /// @notice A ← the element encoded in `encoded`, which has 576 bytes.
    function load(bytes calldata encoded) internal pure {
        uint256 wrong = 0;
        assembly ("memory-safe") {
            for { let i := 0 } lt(i, 12) { i := add(i, 1) } {
                let from := add(encoded.offset, mul(i, 48))
                let high := shr(128, calldataload(from))
                let low := calldataload(add(from, 16))
                if iszero(or(lt(high, P_HIGH), and(eq(high, P_HIGH), lt(low, P_LOW)))) {
                    wrong := add(i, 1)
                }
                let to := add(0x200, shl(5, byte(i, ORDER)))
                mstore(to, low)
                mstore(add(to, 0x180), addmod(low, high, M1))
                mstore(add(to, 0x300), addmod(mulmod(low, SCALE_LOW, M2), mulmod(high, SCALE_HIGH, M2), M2))
            }
        }
        if (wrong != 0) revert CoefficientNotReduced(wrong - 1);
        scale(R2_0, R2_1, R2_2);
    }

    /// @notice The encoding of a third of A (see `GtSquare`), every coefficient below p; A is used up.
    function encodeThird() internal pure returns (bytes memory encoded) {
        encoded = new bytes(576);
        scale(THIRD_0, THIRD_1, THIRD_2);
        assembly ("memory-safe") {
            for { let i := 0 } lt(i, 12) { i := add(i, 1) } {
                let from := add(0x200, shl(5, byte(i, ORDER)))
                // V = low + 2^256·high with high < M1, and 2^256 = 1 modulo M1.
                let low := mload(from)
                let high := addmod(mload(add(from, 0x180)), sub(M1, mod(low, M1)), M1)
                if iszero(or(lt(high, P_HIGH), and(eq(high, P_HIGH), lt(low, P_LOW)))) {
                    high := sub(sub(high, P_HIGH), lt(low, P_LOW))
                    low := sub(low, P_LOW)
                }
                let to := add(add(encoded, 32), mul(i, 48))
                mstore(to, or(shl(128, high), shr(128, low)))
                mstore(add(to, 16), low)
            }
        }
    }

    /// @notice A ← A·c·2^−512 for a number c < p in residues.
    function scale(uint256 c0, uint256 c1, uint256 c2) internal pure {
        assembly ("memory-safe") {
            for { let i := 0x200 } lt(i, 0x380) { i := add(i, 32) } {
                mstore(add(i, 0x480), mul(mload(i), c0))
                mstore(add(i, 0x600), mulmod(mload(add(i, 0x180)), c1, M1))
                mstore(add(i, 0x780), mulmod(mload(add(i, 0x300)), c2, M2))
            }
        }
        reduce();
    }

    /// @notice A ← T·2^−512 modulo p, each coefficient at most p + 2^256.
    function reduce() internal pure {
        reduceWith(P_1, NEGATED_INVERSE, M1, M2);
    }

    /// @dev Two steps of Montgomery's reduction (Math. Comp. 44, 1985) by 2^256 each, in residues. With T made positive:
    /// ```
    /// q = −T/p mod 2^256     U = (T + q·p) / 2^256 < 2^511
    /// q = −U/p mod 2^256     V = (U + q·p) / 2^256 < p + 2^256
    /// ```
    /// A division by 2^256 loses the residue modulo 2^256; it comes back from the other two (mixed radix):
    /// U = u1 + M1·h with h = (U − u1)/M1 mod M2. `u1` may be above M1: U ≥ 0.3 p²/2^256 is larger.
    /// 12 × (8 MULMOD, 5 ADDMOD, 4 MUL) = 3,780 gas; the moduli come as parameters so that they stay on the stack.
    function reduceWith(uint256 p1, uint256 np, uint256 m1, uint256 m2) private pure {
        assembly ("memory-safe") {
            let q := mul(add(mload(0x680), OFFSET_0), np)
            let u1 := add(mload(0x800), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0x980), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x200, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x380, v1)
            mstore(0x500, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x6a0), OFFSET_0), np)
            let u1 := add(mload(0x820), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0x9a0), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x220, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x3a0, v1)
            mstore(0x520, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x6c0), OFFSET_0), np)
            let u1 := add(mload(0x840), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0x9c0), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x240, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x3c0, v1)
            mstore(0x540, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x6e0), OFFSET_0), np)
            let u1 := add(mload(0x860), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0x9e0), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x260, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x3e0, v1)
            mstore(0x560, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x700), OFFSET_0), np)
            let u1 := add(mload(0x880), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0xa00), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x280, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x400, v1)
            mstore(0x580, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x720), OFFSET_0), np)
            let u1 := add(mload(0x8a0), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0xa20), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x2a0, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x420, v1)
            mstore(0x5a0, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x740), OFFSET_0), np)
            let u1 := add(mload(0x8c0), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0xa40), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x2c0, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x440, v1)
            mstore(0x5c0, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x760), OFFSET_0), np)
            let u1 := add(mload(0x8e0), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0xa60), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x2e0, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x460, v1)
            mstore(0x5e0, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x780), OFFSET_0), np)
            let u1 := add(mload(0x900), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0xa80), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x300, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x480, v1)
            mstore(0x600, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x7a0), OFFSET_0), np)
            let u1 := add(mload(0x920), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0xaa0), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x320, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x4a0, v1)
            mstore(0x620, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x7c0), OFFSET_0), np)
            let u1 := add(mload(0x940), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0xac0), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x340, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x4c0, v1)
            mstore(0x640, v2)
        }
        assembly ("memory-safe") {
            let q := mul(add(mload(0x7e0), OFFSET_0), np)
            let u1 := add(mload(0x960), mulmod(q, p1, m1))
            let u2 := addmod(add(mload(0xae0), OFFSET_2), mulmod(q, P_2A, m2), m2)
            q := add(
                mul(u1, np),
                mul(addmod(mulmod(u2, LIFT_U, m2), mulmod(u1, LIFT_1, m2), m2), M1_NEGATED_INVERSE)
            )
            let v1 := addmod(u1, mulmod(q, p1, m1), m1)
            let v2 := addmod(u2, mulmod(q, P_2B, m2), m2)
            mstore(0x360, add(v1, mul(addmod(mulmod(v2, LIFT_V, m2), mulmod(v1, LIFT_1, m2), m2), m1)))
            mstore(0x4e0, v1)
            mstore(0x660, v2)
        }
    }
}
