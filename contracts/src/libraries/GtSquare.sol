// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { GtResidues, M1, M2 } from "./GtResidues.sol";

/// @dev −2·2^512 mod p in residues.
uint256 constant LIFT_MINUS_0 = 0x389774194c57632062c07192f04ee59794478f7f5f7e01628d048ceeb3a8d171;
/// @dev 2·2^512 mod p in residues.
uint256 constant LIFT_PLUS_0 = 0x2bdfd76ba72daf9f0470610e0662108c8a64707f51d5fe9d2cfa73114c56d93a;
/// @dev The same modulo M1.
uint256 constant LIFT_MINUS_1 = 0x389774194c57632062c07192f04ee597a8b1e6f488613a72e2b09a951a5850d0;
/// @dev The same modulo M1.
uint256 constant LIFT_PLUS_1 = 0x2bdfd76ba72daf9f0470610e0662108c8ffb2af46272ac27226a0d2128f306b2;
/// @dev The same modulo M2, scaled.
uint256 constant LIFT_MINUS_2 = 0x729d301d10e5e51dd79bbedfd8e5f90498e7040ddb3e3807e6195a08c5abb6c1;
/// @dev The same modulo M2, scaled.
uint256 constant LIFT_PLUS_2 = 0x910244ec1356eddd39c18c01aa61b434fbf1c5bd316121690819fe932838fc5e;

/// @title Squares in the cyclotomic subgroup
/// @notice Granger and Scott (ePrint 2009/565, section 3.2): for z in the subgroup of order p^4 − p^2 + 1 of F_p12,
/// with three pairs (a, b) of z's coefficients, the square's coefficients are
/// ```
/// 3(a² + ξb²) − 2z_i      and      6ab + 2z_j      (6ξab for one of the pairs)
/// ```
/// A holds **3z**: in y = 3z the factors three go away, `y' = (a² + ξb²) − 2y_i` and `2ab + 2y_j`. A product with an
/// operand that is not scaled keeps the scale.
///
/// Per pair: a² and b² as (x + y)(x − y) and 2xy, ab by Karatsuba: 7 multiplications; and 4 for the −2y and +2y,
/// which enter the sum of products as y·(∓2·2^512 mod p). 33 multiplications modulo each of M0, M1 and M2.
library GtSquare {
    /// @notice A ← 3z² where A is 3z. 8,420 gas.
    function square() internal pure {
        square0();
        square1(M1);
        square2(M2);
        GtResidues.reduce();
    }

    /// @dev T's residues modulo 2^256.
    function square0() private pure {
        // a = c0.c0, b = c1.c1: c0.c0 gets a² + ξb² − 2c0.c0, c1.c1 gets 2ab + 2c1.c1.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            assembly ("memory-safe") {
                ax := mload(0x200)
                ay := mload(0x220)
                bx := mload(0x2c0)
                by := mload(0x2e0)
            }
            assembly ("memory-safe") {
                sa := add(ax, ay)
                sb := add(bx, by)
            }
            assembly ("memory-safe") {
                s := mul(sb, sub(bx, by))
            }
            assembly ("memory-safe") {
                by := add(by, by)
                d := mul(bx, by)
            }
            assembly ("memory-safe") {
                mstore(0x680, add(sub(add(mul(sa, sub(ax, ay)), s), d), mul(mload(0x200), LIFT_MINUS_0)))
            }
            assembly ("memory-safe") {
                mstore(0x6a0, add(add(add(mul(ax, add(ay, ay)), s), d), mul(mload(0x220), LIFT_MINUS_0)))
            }
            assembly ("memory-safe") {
                s := mul(ax, add(bx, bx))
                d := mul(ay, by)
            }
            assembly ("memory-safe") {
                sa := mul(sa, add(sb, sb))
            }
            assembly ("memory-safe") {
                mstore(0x740, add(sub(s, d), mul(mload(0x2c0), LIFT_PLUS_0)))
            }
            assembly ("memory-safe") {
                mstore(0x760, add(sub(sub(sa, s), d), mul(mload(0x2e0), LIFT_PLUS_0)))
            }
        }
        // a = c1.c0, b = c0.c2: c0.c1 gets a² + ξb² − 2c0.c1, c1.c2 gets 2ab + 2c1.c2.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            assembly ("memory-safe") {
                ax := mload(0x240)
                ay := mload(0x260)
                bx := mload(0x300)
                by := mload(0x320)
            }
            assembly ("memory-safe") {
                sa := add(ax, ay)
                sb := add(bx, by)
            }
            assembly ("memory-safe") {
                s := mul(sb, sub(bx, by))
            }
            assembly ("memory-safe") {
                by := add(by, by)
                d := mul(bx, by)
            }
            assembly ("memory-safe") {
                mstore(0x700, add(sub(add(mul(sa, sub(ax, ay)), s), d), mul(mload(0x280), LIFT_MINUS_0)))
            }
            assembly ("memory-safe") {
                mstore(0x720, add(add(add(mul(ax, add(ay, ay)), s), d), mul(mload(0x2a0), LIFT_MINUS_0)))
            }
            assembly ("memory-safe") {
                s := mul(ax, add(bx, bx))
                d := mul(ay, by)
            }
            assembly ("memory-safe") {
                sa := mul(sa, add(sb, sb))
            }
            assembly ("memory-safe") {
                mstore(0x7c0, add(sub(s, d), mul(mload(0x340), LIFT_PLUS_0)))
            }
            assembly ("memory-safe") {
                mstore(0x7e0, add(sub(sub(sa, s), d), mul(mload(0x360), LIFT_PLUS_0)))
            }
        }
        // a = c0.c1, b = c1.c2: c0.c2 gets a² + ξb² − 2c0.c2, c1.c0 gets 2ξab + 2c1.c0.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            assembly ("memory-safe") {
                ax := mload(0x280)
                ay := mload(0x2a0)
                bx := mload(0x340)
                by := mload(0x360)
            }
            assembly ("memory-safe") {
                sa := add(ax, ay)
                sb := add(bx, by)
            }
            assembly ("memory-safe") {
                s := mul(sb, sub(bx, by))
            }
            assembly ("memory-safe") {
                by := add(by, by)
                d := mul(bx, by)
            }
            assembly ("memory-safe") {
                mstore(0x780, add(sub(add(mul(sa, sub(ax, ay)), s), d), mul(mload(0x300), LIFT_MINUS_0)))
            }
            assembly ("memory-safe") {
                mstore(0x7a0, add(add(add(mul(ax, add(ay, ay)), s), d), mul(mload(0x320), LIFT_MINUS_0)))
            }
            assembly ("memory-safe") {
                s := mul(ax, add(bx, bx))
                d := mul(ay, by)
            }
            assembly ("memory-safe") {
                sa := mul(sa, add(sb, sb))
            }
            assembly ("memory-safe") {
                mstore(0x6c0, add(sub(add(s, s), sa), mul(mload(0x240), LIFT_PLUS_0)))
            }
            assembly ("memory-safe") {
                mstore(0x6e0, add(sub(sa, add(d, d)), mul(mload(0x260), LIFT_PLUS_0)))
            }
        }
    }

    /// @dev T's residues modulo M1; sums of three residues fit a word.
    function square1(uint256 m1) private pure {
        // a = c0.c0, b = c1.c1: c0.c0 gets a² + ξb² − 2c0.c0, c1.c1 gets 2ab + 2c1.c1.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            uint256 t;
            assembly ("memory-safe") {
                ax := mload(0x380)
                ay := mload(0x3a0)
                bx := mload(0x440)
                by := mload(0x460)
            }
            assembly ("memory-safe") {
                sa := add(ax, ay)
                sb := add(bx, by)
            }
            assembly ("memory-safe") {
                s := mulmod(sb, add(bx, sub(m1, by)), m1)
            }
            assembly ("memory-safe") {
                by := add(by, by)
                d := mulmod(bx, by, m1)
            }
            assembly ("memory-safe") {
                t := mulmod(sa, add(ax, sub(m1, ay)), m1)
            }
            assembly ("memory-safe") {
                mstore(0x800, addmod(add(t, s), add(sub(m1, d), mulmod(mload(0x380), LIFT_MINUS_1, m1)), m1))
            }
            assembly ("memory-safe") {
                t := mulmod(ax, add(ay, ay), m1)
            }
            assembly ("memory-safe") {
                mstore(0x820, addmod(add(t, s), add(d, mulmod(mload(0x3a0), LIFT_MINUS_1, m1)), m1))
            }
            assembly ("memory-safe") {
                s := mulmod(ax, add(bx, bx), m1)
                d := mulmod(ay, by, m1)
            }
            assembly ("memory-safe") {
                sa := mulmod(sa, sb, m1)
            }
            assembly ("memory-safe") {
                mstore(0x8c0, addmod(add(s, sub(m1, d)), mulmod(mload(0x440), LIFT_PLUS_1, m1), m1))
            }
            assembly ("memory-safe") {
                mstore(
                    0x8e0,
                    addmod(
                        add(add(sa, sa), sub(m1, s)),
                        add(sub(m1, d), mulmod(mload(0x460), LIFT_PLUS_1, m1)),
                        m1
                    )
                )
            }
        }
        // a = c1.c0, b = c0.c2: c0.c1 gets a² + ξb² − 2c0.c1, c1.c2 gets 2ab + 2c1.c2.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            uint256 t;
            assembly ("memory-safe") {
                ax := mload(0x3c0)
                ay := mload(0x3e0)
                bx := mload(0x480)
                by := mload(0x4a0)
            }
            assembly ("memory-safe") {
                sa := add(ax, ay)
                sb := add(bx, by)
            }
            assembly ("memory-safe") {
                s := mulmod(sb, add(bx, sub(m1, by)), m1)
            }
            assembly ("memory-safe") {
                by := add(by, by)
                d := mulmod(bx, by, m1)
            }
            assembly ("memory-safe") {
                t := mulmod(sa, add(ax, sub(m1, ay)), m1)
            }
            assembly ("memory-safe") {
                mstore(0x880, addmod(add(t, s), add(sub(m1, d), mulmod(mload(0x400), LIFT_MINUS_1, m1)), m1))
            }
            assembly ("memory-safe") {
                t := mulmod(ax, add(ay, ay), m1)
            }
            assembly ("memory-safe") {
                mstore(0x8a0, addmod(add(t, s), add(d, mulmod(mload(0x420), LIFT_MINUS_1, m1)), m1))
            }
            assembly ("memory-safe") {
                s := mulmod(ax, add(bx, bx), m1)
                d := mulmod(ay, by, m1)
            }
            assembly ("memory-safe") {
                sa := mulmod(sa, sb, m1)
            }
            assembly ("memory-safe") {
                mstore(0x940, addmod(add(s, sub(m1, d)), mulmod(mload(0x4c0), LIFT_PLUS_1, m1), m1))
            }
            assembly ("memory-safe") {
                mstore(
                    0x960,
                    addmod(
                        add(add(sa, sa), sub(m1, s)),
                        add(sub(m1, d), mulmod(mload(0x4e0), LIFT_PLUS_1, m1)),
                        m1
                    )
                )
            }
        }
        // a = c0.c1, b = c1.c2: c0.c2 gets a² + ξb² − 2c0.c2, c1.c0 gets 2ξab + 2c1.c0.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            uint256 t;
            assembly ("memory-safe") {
                ax := mload(0x400)
                ay := mload(0x420)
                bx := mload(0x4c0)
                by := mload(0x4e0)
            }
            assembly ("memory-safe") {
                sa := add(ax, ay)
                sb := add(bx, by)
            }
            assembly ("memory-safe") {
                s := mulmod(sb, add(bx, sub(m1, by)), m1)
            }
            assembly ("memory-safe") {
                by := add(by, by)
                d := mulmod(bx, by, m1)
            }
            assembly ("memory-safe") {
                t := mulmod(sa, add(ax, sub(m1, ay)), m1)
            }
            assembly ("memory-safe") {
                mstore(0x900, addmod(add(t, s), add(sub(m1, d), mulmod(mload(0x480), LIFT_MINUS_1, m1)), m1))
            }
            assembly ("memory-safe") {
                t := mulmod(ax, add(ay, ay), m1)
            }
            assembly ("memory-safe") {
                mstore(0x920, addmod(add(t, s), add(d, mulmod(mload(0x4a0), LIFT_MINUS_1, m1)), m1))
            }
            assembly ("memory-safe") {
                s := mulmod(ax, add(bx, bx), m1)
                d := mulmod(ay, by, m1)
            }
            assembly ("memory-safe") {
                sa := mulmod(sa, sb, m1)
            }
            assembly ("memory-safe") {
                mstore(
                    0x840,
                    addmod(
                        add(s, s),
                        add(sub(m1, sa), add(sub(m1, sa), mulmod(mload(0x3c0), LIFT_PLUS_1, m1))),
                        m1
                    )
                )
            }
            assembly ("memory-safe") {
                mstore(
                    0x860,
                    addmod(
                        add(sa, sa),
                        add(sub(m1, d), add(sub(m1, d), mulmod(mload(0x3e0), LIFT_PLUS_1, m1))),
                        m1
                    )
                )
            }
        }
    }

    /// @dev T's residues modulo M2.
    function square2(uint256 m2) private pure {
        // a = c0.c0, b = c1.c1: c0.c0 gets a² + ξb² − 2c0.c0, c1.c1 gets 2ab + 2c1.c1.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            uint256 t;
            assembly ("memory-safe") {
                ax := mload(0x500)
                ay := mload(0x520)
                bx := mload(0x5c0)
                by := mload(0x5e0)
            }
            assembly ("memory-safe") {
                sa := addmod(ax, ay, m2)
                sb := addmod(bx, by, m2)
            }
            assembly ("memory-safe") {
                s := mulmod(sb, addmod(bx, sub(m2, by), m2), m2)
            }
            assembly ("memory-safe") {
                by := addmod(by, by, m2)
                d := mulmod(bx, by, m2)
            }
            assembly ("memory-safe") {
                t := mulmod(sa, addmod(ax, sub(m2, ay), m2), m2)
            }
            assembly ("memory-safe") {
                mstore(
                    0x980,
                    addmod(
                        addmod(t, s, m2),
                        addmod(sub(m2, d), mulmod(mload(0x500), LIFT_MINUS_2, m2), m2),
                        m2
                    )
                )
            }
            assembly ("memory-safe") {
                t := mulmod(ax, addmod(ay, ay, m2), m2)
            }
            assembly ("memory-safe") {
                mstore(
                    0x9a0,
                    addmod(addmod(t, s, m2), addmod(d, mulmod(mload(0x520), LIFT_MINUS_2, m2), m2), m2)
                )
            }
            assembly ("memory-safe") {
                s := mulmod(ax, addmod(bx, bx, m2), m2)
                d := mulmod(ay, by, m2)
            }
            assembly ("memory-safe") {
                sa := mulmod(sa, addmod(sb, sb, m2), m2)
            }
            assembly ("memory-safe") {
                mstore(0xa40, addmod(addmod(s, sub(m2, d), m2), mulmod(mload(0x5c0), LIFT_PLUS_2, m2), m2))
            }
            assembly ("memory-safe") {
                mstore(
                    0xa60,
                    addmod(
                        addmod(sa, sub(m2, s), m2),
                        addmod(sub(m2, d), mulmod(mload(0x5e0), LIFT_PLUS_2, m2), m2),
                        m2
                    )
                )
            }
        }
        // a = c1.c0, b = c0.c2: c0.c1 gets a² + ξb² − 2c0.c1, c1.c2 gets 2ab + 2c1.c2.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            uint256 t;
            assembly ("memory-safe") {
                ax := mload(0x540)
                ay := mload(0x560)
                bx := mload(0x600)
                by := mload(0x620)
            }
            assembly ("memory-safe") {
                sa := addmod(ax, ay, m2)
                sb := addmod(bx, by, m2)
            }
            assembly ("memory-safe") {
                s := mulmod(sb, addmod(bx, sub(m2, by), m2), m2)
            }
            assembly ("memory-safe") {
                by := addmod(by, by, m2)
                d := mulmod(bx, by, m2)
            }
            assembly ("memory-safe") {
                t := mulmod(sa, addmod(ax, sub(m2, ay), m2), m2)
            }
            assembly ("memory-safe") {
                mstore(
                    0xa00,
                    addmod(
                        addmod(t, s, m2),
                        addmod(sub(m2, d), mulmod(mload(0x580), LIFT_MINUS_2, m2), m2),
                        m2
                    )
                )
            }
            assembly ("memory-safe") {
                t := mulmod(ax, addmod(ay, ay, m2), m2)
            }
            assembly ("memory-safe") {
                mstore(
                    0xa20,
                    addmod(addmod(t, s, m2), addmod(d, mulmod(mload(0x5a0), LIFT_MINUS_2, m2), m2), m2)
                )
            }
            assembly ("memory-safe") {
                s := mulmod(ax, addmod(bx, bx, m2), m2)
                d := mulmod(ay, by, m2)
            }
            assembly ("memory-safe") {
                sa := mulmod(sa, addmod(sb, sb, m2), m2)
            }
            assembly ("memory-safe") {
                mstore(0xac0, addmod(addmod(s, sub(m2, d), m2), mulmod(mload(0x640), LIFT_PLUS_2, m2), m2))
            }
            assembly ("memory-safe") {
                mstore(
                    0xae0,
                    addmod(
                        addmod(sa, sub(m2, s), m2),
                        addmod(sub(m2, d), mulmod(mload(0x660), LIFT_PLUS_2, m2), m2),
                        m2
                    )
                )
            }
        }
        // a = c0.c1, b = c1.c2: c0.c2 gets a² + ξb² − 2c0.c2, c1.c0 gets 2ξab + 2c1.c0.
        {
            uint256 ax;
            uint256 ay;
            uint256 bx;
            uint256 by;
            uint256 sa;
            uint256 sb;
            uint256 s;
            uint256 d;
            uint256 t;
            assembly ("memory-safe") {
                ax := mload(0x580)
                ay := mload(0x5a0)
                bx := mload(0x640)
                by := mload(0x660)
            }
            assembly ("memory-safe") {
                sa := addmod(ax, ay, m2)
                sb := addmod(bx, by, m2)
            }
            assembly ("memory-safe") {
                s := mulmod(sb, addmod(bx, sub(m2, by), m2), m2)
            }
            assembly ("memory-safe") {
                by := addmod(by, by, m2)
                d := mulmod(bx, by, m2)
            }
            assembly ("memory-safe") {
                t := mulmod(sa, addmod(ax, sub(m2, ay), m2), m2)
            }
            assembly ("memory-safe") {
                mstore(
                    0xa80,
                    addmod(
                        addmod(t, s, m2),
                        addmod(sub(m2, d), mulmod(mload(0x600), LIFT_MINUS_2, m2), m2),
                        m2
                    )
                )
            }
            assembly ("memory-safe") {
                t := mulmod(ax, addmod(ay, ay, m2), m2)
            }
            assembly ("memory-safe") {
                mstore(
                    0xaa0,
                    addmod(addmod(t, s, m2), addmod(d, mulmod(mload(0x620), LIFT_MINUS_2, m2), m2), m2)
                )
            }
            assembly ("memory-safe") {
                s := mulmod(ax, addmod(bx, bx, m2), m2)
                d := mulmod(ay, by, m2)
            }
            assembly ("memory-safe") {
                sa := mulmod(sa, addmod(sb, sb, m2), m2)
            }
            assembly ("memory-safe") {
                mstore(
                    0x9c0,
                    addmod(
                        addmod(s, s, m2),
                        addmod(sub(m2, sa), mulmod(mload(0x540), LIFT_PLUS_2, m2), m2),
                        m2
                    )
                )
            }
            assembly ("memory-safe") {
                d := addmod(d, d, m2)
            }
            assembly ("memory-safe") {
                mstore(0x9e0, addmod(addmod(sa, sub(m2, d), m2), mulmod(mload(0x560), LIFT_PLUS_2, m2), m2))
            }
        }
    }
}
