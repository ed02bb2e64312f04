// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {
    GtResidues,
    M1,
    M2,
    NEGATED_ROOT_1,
    NEGATED_ROOT_2,
    THREE_0,
    THREE_1,
    THREE_2
} from "./GtResidues.sol";

/// @dev i with i² = −1 modulo M1.
uint256 constant ROOT_1 = 0x1707f727d70837279707f728570837281707f727d70837289707f72857083728;
/// @dev ξ at i: 1 + i.
uint256 constant XI_PLUS_1 = 0x1707f727d70837279707f728570837281707f727d70837289707f72857083729;
/// @dev ξ at −i: 1 − i.
uint256 constant XI_MINUS_1 = 0x3e4d5e2d7e4d1e2dbe4d5e2cfe4d1e2d3e4d5e2d7e4d1e2cbe4d5e2cfe4d1e2e;
/// @dev 1/2.
uint256 constant HALF_1 = 0x2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab;
/// @dev i/2.
uint256 constant HALF_ROOT_1 = 0xb83fb93eb841b93cb83fb942b841b940b83fb93eb841b944b83fb942b841b94;
/// @dev i with i² = −1 modulo M2.
uint256 constant ROOT_2 = 0xb54f88543636a7dbae53d2034d515fce94994302141c209819a04c835310b89b;
/// @dev ξ at i: 1 + i.
uint256 constant XI_PLUS_2 = 0xb54f88543636a7dbae53d2034d515fce94994302141c209819a04c835310b89c;
/// @dev ξ at −i: 1 − i.
uint256 constant XI_MINUS_2 = 0x2ab077abc9c9582451ac2dfcb2aea0316b66bcfdebe3df67e65fb37cacef4547;
/// @dev 1/2.
uint256 constant HALF_2 = 0x6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffef1;
/// @dev i/2.
uint256 constant HALF_ROOT_2 = 0xcaa7c42a1b1b53edd729e901a6a8afe74a4ca1810a0e104c0cd02641a9885b3e;

/// @title Products in F_p12
/// @notice `(Σ a_i w^i)(Σ b_j w^j)`, w^6 = ξ = 1 + u, over F_p2: 36 products in F_p2, schoolbook (Karatsuba's sums
/// cost as much here as the products that they save), every coefficient reduced once.
///
/// Modulo M0 a product in F_p2 is three multiplications (Karatsuba): 108 MUL. Modulo M1 and M2 the number −1 has a
/// root i, and Z[u]/(u² + 1) maps to two numbers, the values at u = i and u = −i, which multiply one by one: 72 MULMOD
/// and 10 for ξ, and 12 each to go there and back. (A quadratic residue number system.)
///
/// Operand B is prepared: modulo M0 as it is; modulo M1 and M2 half its six values at i, then half those at −i, so
/// that sum and difference of the two products need no halving.
library GtProduct {
    /// @notice A ← A·B. 13,170 gas.
    function multiply() internal pure {
        multiply0();
        multiply1(M1);
        multiply2(M2);
        GtResidues.reduce();
    }

    /// @notice Puts A, as an operand, at `to`.
    function operand(uint256 to) internal pure {
        operandWith(to, M1, M2);
    }

    /// @notice B ← B's conjugate over F_p6, its inverse in GT: the odd coefficients negated.
    function conjugate() internal pure {
        conjugateWith(M1, M2);
    }

    /// @notice A ← 3·B.
    function start() internal pure {
        assembly ("memory-safe") {
            mcopy(0x200, 0xb00, 0x180)
            for { let i := 0 } lt(i, 6) { i := add(i, 1) } {
                let from := add(0xc80, shl(5, i))
                let to := add(0x380, shl(6, i))
                let x := mload(from)
                let y := mload(add(from, 0xc0))
                mstore(to, addmod(x, y, M1))
                mstore(add(to, 0x20), mulmod(NEGATED_ROOT_1, add(x, sub(M1, y)), M1))
                x := mload(add(from, 0x180))
                y := mload(add(from, 0x240))
                mstore(add(to, 0x180), addmod(x, y, M2))
                mstore(add(to, 0x1a0), mulmod(NEGATED_ROOT_2, addmod(x, sub(M2, y), M2), M2))
            }
        }
        GtResidues.scale(THREE_0, THREE_1, THREE_2);
    }

    /// @dev T's residues modulo 2^256. With n the sums of the products that stay below w^6 and x of those that wrap
    /// around, of x·x, y·y and (x + y)(x + y): real n0 − n1 + 2x0 − x2, imaginary n2 + x2 − n0 − n1 − 2x1.
    function multiply0() private pure {
        assembly ("memory-safe") {
            mstore(0x1580, add(mload(0x200), mload(0x220)))
            mstore(0x1640, add(mload(0xb00), mload(0xb20)))
        }
        assembly ("memory-safe") {
            mstore(0x15a0, add(mload(0x240), mload(0x260)))
            mstore(0x1660, add(mload(0xb40), mload(0xb60)))
        }
        assembly ("memory-safe") {
            mstore(0x15c0, add(mload(0x280), mload(0x2a0)))
            mstore(0x1680, add(mload(0xb80), mload(0xba0)))
        }
        assembly ("memory-safe") {
            mstore(0x15e0, add(mload(0x2c0), mload(0x2e0)))
            mstore(0x16a0, add(mload(0xbc0), mload(0xbe0)))
        }
        assembly ("memory-safe") {
            mstore(0x1600, add(mload(0x300), mload(0x320)))
            mstore(0x16c0, add(mload(0xc00), mload(0xc20)))
        }
        assembly ("memory-safe") {
            mstore(0x1620, add(mload(0x340), mload(0x360)))
            mstore(0x16e0, add(mload(0xc40), mload(0xc60)))
        }
        // w^0
        assembly ("memory-safe") {
            let n0 := mul(mload(0x200), mload(0xb00))
            let x0 :=
                add(
                    mul(mload(0x240), mload(0xc40)),
                    add(
                        mul(mload(0x280), mload(0xc00)),
                        add(
                            mul(mload(0x2c0), mload(0xbc0)),
                            add(mul(mload(0x300), mload(0xb80)), mul(mload(0x340), mload(0xb40)))
                        )
                    )
                )
            let n1 := mul(mload(0x220), mload(0xb20))
            let x1 :=
                add(
                    mul(mload(0x260), mload(0xc60)),
                    add(
                        mul(mload(0x2a0), mload(0xc20)),
                        add(
                            mul(mload(0x2e0), mload(0xbe0)),
                            add(mul(mload(0x320), mload(0xba0)), mul(mload(0x360), mload(0xb60)))
                        )
                    )
                )
            let n2 := mul(mload(0x1580), mload(0x1640))
            let x2 :=
                add(
                    mul(mload(0x15a0), mload(0x16e0)),
                    add(
                        mul(mload(0x15c0), mload(0x16c0)),
                        add(
                            mul(mload(0x15e0), mload(0x16a0)),
                            add(mul(mload(0x1600), mload(0x1680)), mul(mload(0x1620), mload(0x1660)))
                        )
                    )
                )
            mstore(0x680, sub(add(sub(n0, n1), add(x0, x0)), x2))
            mstore(0x6a0, sub(add(n2, x2), add(add(n0, n1), add(x1, x1))))
        }
        // w^1
        assembly ("memory-safe") {
            let n0 := add(mul(mload(0x200), mload(0xb40)), mul(mload(0x240), mload(0xb00)))
            let x0 :=
                add(
                    mul(mload(0x280), mload(0xc40)),
                    add(
                        mul(mload(0x2c0), mload(0xc00)),
                        add(mul(mload(0x300), mload(0xbc0)), mul(mload(0x340), mload(0xb80)))
                    )
                )
            let n1 := add(mul(mload(0x220), mload(0xb60)), mul(mload(0x260), mload(0xb20)))
            let x1 :=
                add(
                    mul(mload(0x2a0), mload(0xc60)),
                    add(
                        mul(mload(0x2e0), mload(0xc20)),
                        add(mul(mload(0x320), mload(0xbe0)), mul(mload(0x360), mload(0xba0)))
                    )
                )
            let n2 := add(mul(mload(0x1580), mload(0x1660)), mul(mload(0x15a0), mload(0x1640)))
            let x2 :=
                add(
                    mul(mload(0x15c0), mload(0x16e0)),
                    add(
                        mul(mload(0x15e0), mload(0x16c0)),
                        add(mul(mload(0x1600), mload(0x16a0)), mul(mload(0x1620), mload(0x1680)))
                    )
                )
            mstore(0x6c0, sub(add(sub(n0, n1), add(x0, x0)), x2))
            mstore(0x6e0, sub(add(n2, x2), add(add(n0, n1), add(x1, x1))))
        }
        // w^2
        assembly ("memory-safe") {
            let n0 :=
                add(
                    mul(mload(0x200), mload(0xb80)),
                    add(mul(mload(0x240), mload(0xb40)), mul(mload(0x280), mload(0xb00)))
                )
            let x0 :=
                add(
                    mul(mload(0x2c0), mload(0xc40)),
                    add(mul(mload(0x300), mload(0xc00)), mul(mload(0x340), mload(0xbc0)))
                )
            let n1 :=
                add(
                    mul(mload(0x220), mload(0xba0)),
                    add(mul(mload(0x260), mload(0xb60)), mul(mload(0x2a0), mload(0xb20)))
                )
            let x1 :=
                add(
                    mul(mload(0x2e0), mload(0xc60)),
                    add(mul(mload(0x320), mload(0xc20)), mul(mload(0x360), mload(0xbe0)))
                )
            let n2 :=
                add(
                    mul(mload(0x1580), mload(0x1680)),
                    add(mul(mload(0x15a0), mload(0x1660)), mul(mload(0x15c0), mload(0x1640)))
                )
            let x2 :=
                add(
                    mul(mload(0x15e0), mload(0x16e0)),
                    add(mul(mload(0x1600), mload(0x16c0)), mul(mload(0x1620), mload(0x16a0)))
                )
            mstore(0x700, sub(add(sub(n0, n1), add(x0, x0)), x2))
            mstore(0x720, sub(add(n2, x2), add(add(n0, n1), add(x1, x1))))
        }
        // w^3
        assembly ("memory-safe") {
            let n0 :=
                add(
                    mul(mload(0x200), mload(0xbc0)),
                    add(
                        mul(mload(0x240), mload(0xb80)),
                        add(mul(mload(0x280), mload(0xb40)), mul(mload(0x2c0), mload(0xb00)))
                    )
                )
            let x0 := add(mul(mload(0x300), mload(0xc40)), mul(mload(0x340), mload(0xc00)))
            let n1 :=
                add(
                    mul(mload(0x220), mload(0xbe0)),
                    add(
                        mul(mload(0x260), mload(0xba0)),
                        add(mul(mload(0x2a0), mload(0xb60)), mul(mload(0x2e0), mload(0xb20)))
                    )
                )
            let x1 := add(mul(mload(0x320), mload(0xc60)), mul(mload(0x360), mload(0xc20)))
            let n2 :=
                add(
                    mul(mload(0x1580), mload(0x16a0)),
                    add(
                        mul(mload(0x15a0), mload(0x1680)),
                        add(mul(mload(0x15c0), mload(0x1660)), mul(mload(0x15e0), mload(0x1640)))
                    )
                )
            let x2 := add(mul(mload(0x1600), mload(0x16e0)), mul(mload(0x1620), mload(0x16c0)))
            mstore(0x740, sub(add(sub(n0, n1), add(x0, x0)), x2))
            mstore(0x760, sub(add(n2, x2), add(add(n0, n1), add(x1, x1))))
        }
        // w^4
        assembly ("memory-safe") {
            let n0 :=
                add(
                    mul(mload(0x200), mload(0xc00)),
                    add(
                        mul(mload(0x240), mload(0xbc0)),
                        add(
                            mul(mload(0x280), mload(0xb80)),
                            add(mul(mload(0x2c0), mload(0xb40)), mul(mload(0x300), mload(0xb00)))
                        )
                    )
                )
            let x0 := mul(mload(0x340), mload(0xc40))
            let n1 :=
                add(
                    mul(mload(0x220), mload(0xc20)),
                    add(
                        mul(mload(0x260), mload(0xbe0)),
                        add(
                            mul(mload(0x2a0), mload(0xba0)),
                            add(mul(mload(0x2e0), mload(0xb60)), mul(mload(0x320), mload(0xb20)))
                        )
                    )
                )
            let x1 := mul(mload(0x360), mload(0xc60))
            let n2 :=
                add(
                    mul(mload(0x1580), mload(0x16c0)),
                    add(
                        mul(mload(0x15a0), mload(0x16a0)),
                        add(
                            mul(mload(0x15c0), mload(0x1680)),
                            add(mul(mload(0x15e0), mload(0x1660)), mul(mload(0x1600), mload(0x1640)))
                        )
                    )
                )
            let x2 := mul(mload(0x1620), mload(0x16e0))
            mstore(0x780, sub(add(sub(n0, n1), add(x0, x0)), x2))
            mstore(0x7a0, sub(add(n2, x2), add(add(n0, n1), add(x1, x1))))
        }
        // w^5
        assembly ("memory-safe") {
            let n0 :=
                add(
                    mul(mload(0x200), mload(0xc40)),
                    add(
                        mul(mload(0x240), mload(0xc00)),
                        add(
                            mul(mload(0x280), mload(0xbc0)),
                            add(
                                mul(mload(0x2c0), mload(0xb80)),
                                add(mul(mload(0x300), mload(0xb40)), mul(mload(0x340), mload(0xb00)))
                            )
                        )
                    )
                )
            let n1 :=
                add(
                    mul(mload(0x220), mload(0xc60)),
                    add(
                        mul(mload(0x260), mload(0xc20)),
                        add(
                            mul(mload(0x2a0), mload(0xbe0)),
                            add(
                                mul(mload(0x2e0), mload(0xba0)),
                                add(mul(mload(0x320), mload(0xb60)), mul(mload(0x360), mload(0xb20)))
                            )
                        )
                    )
                )
            let n2 :=
                add(
                    mul(mload(0x1580), mload(0x16e0)),
                    add(
                        mul(mload(0x15a0), mload(0x16c0)),
                        add(
                            mul(mload(0x15c0), mload(0x16a0)),
                            add(
                                mul(mload(0x15e0), mload(0x1680)),
                                add(mul(mload(0x1600), mload(0x1660)), mul(mload(0x1620), mload(0x1640)))
                            )
                        )
                    )
                )
            mstore(0x7c0, sub(n0, n1))
            mstore(0x7e0, sub(n2, add(n0, n1)))
        }
    }

    /// @dev T's residues modulo M1: the products at −i, then those at i, and from both the coefficients.
    function multiply1(uint256 m1) private pure {
        assembly ("memory-safe") {
            let x := mload(0x380)
            let y := mulmod(mload(0x3a0), ROOT_1, m1)
            mstore(0xf80, add(x, y))
            mstore(0x1040, add(x, sub(m1, y)))
        }
        assembly ("memory-safe") {
            let x := mload(0x3c0)
            let y := mulmod(mload(0x3e0), ROOT_1, m1)
            mstore(0xfa0, add(x, y))
            mstore(0x1060, add(x, sub(m1, y)))
        }
        assembly ("memory-safe") {
            let x := mload(0x400)
            let y := mulmod(mload(0x420), ROOT_1, m1)
            mstore(0xfc0, add(x, y))
            mstore(0x1080, add(x, sub(m1, y)))
        }
        assembly ("memory-safe") {
            let x := mload(0x440)
            let y := mulmod(mload(0x460), ROOT_1, m1)
            mstore(0xfe0, add(x, y))
            mstore(0x10a0, add(x, sub(m1, y)))
        }
        assembly ("memory-safe") {
            let x := mload(0x480)
            let y := mulmod(mload(0x4a0), ROOT_1, m1)
            mstore(0x1000, add(x, y))
            mstore(0x10c0, add(x, sub(m1, y)))
        }
        assembly ("memory-safe") {
            let x := mload(0x4c0)
            let y := mulmod(mload(0x4e0), ROOT_1, m1)
            mstore(0x1020, add(x, y))
            mstore(0x10e0, add(x, sub(m1, y)))
        }
        {
            uint256 b0;
            uint256 b1;
            uint256 b2;
            uint256 b3;
            uint256 b4;
            uint256 b5;
            assembly ("memory-safe") {
                b0 := mload(0xd40)
                b1 := mload(0xd60)
                b2 := mload(0xd80)
                b3 := mload(0xda0)
                b4 := mload(0xdc0)
                b5 := mload(0xde0)
            }
            // w^0 at −i
            assembly ("memory-safe") {
                mstore(
                    0x1280,
                    addmod(
                        mulmod(mload(0x1040), b0, m1),
                        mulmod(
                            XI_MINUS_1,
                            addmod(
                                add(
                                    mulmod(mload(0x1060), b5, m1),
                                    add(mulmod(mload(0x1080), b4, m1), mulmod(mload(0x10a0), b3, m1))
                                ),
                                add(mulmod(mload(0x10c0), b2, m1), mulmod(mload(0x10e0), b1, m1)),
                                m1
                            ),
                            m1
                        ),
                        m1
                    )
                )
            }
            // w^1 at −i
            assembly ("memory-safe") {
                mstore(
                    0x12a0,
                    addmod(
                        add(mulmod(mload(0x1040), b1, m1), mulmod(mload(0x1060), b0, m1)),
                        mulmod(
                            XI_MINUS_1,
                            addmod(
                                add(
                                    mulmod(mload(0x1080), b5, m1),
                                    add(mulmod(mload(0x10a0), b4, m1), mulmod(mload(0x10c0), b3, m1))
                                ),
                                mulmod(mload(0x10e0), b2, m1),
                                m1
                            ),
                            m1
                        ),
                        m1
                    )
                )
            }
            // w^2 at −i
            assembly ("memory-safe") {
                mstore(
                    0x12c0,
                    addmod(
                        add(mulmod(mload(0x1040), b2, m1), mulmod(mload(0x1060), b1, m1)),
                        add(
                            mulmod(mload(0x1080), b0, m1),
                            mulmod(
                                XI_MINUS_1,
                                add(
                                    mulmod(mload(0x10a0), b5, m1),
                                    add(mulmod(mload(0x10c0), b4, m1), mulmod(mload(0x10e0), b3, m1))
                                ),
                                m1
                            )
                        ),
                        m1
                    )
                )
            }
            // w^3 at −i
            assembly ("memory-safe") {
                mstore(
                    0x12e0,
                    addmod(
                        add(
                            mulmod(mload(0x1040), b3, m1),
                            add(mulmod(mload(0x1060), b2, m1), mulmod(mload(0x1080), b1, m1))
                        ),
                        add(
                            mulmod(mload(0x10a0), b0, m1),
                            mulmod(
                                XI_MINUS_1,
                                add(mulmod(mload(0x10c0), b5, m1), mulmod(mload(0x10e0), b4, m1)),
                                m1
                            )
                        ),
                        m1
                    )
                )
            }
            // w^4 at −i
            assembly ("memory-safe") {
                mstore(
                    0x1300,
                    addmod(
                        add(
                            mulmod(mload(0x1040), b4, m1),
                            add(mulmod(mload(0x1060), b3, m1), mulmod(mload(0x1080), b2, m1))
                        ),
                        add(
                            mulmod(mload(0x10a0), b1, m1),
                            add(
                                mulmod(mload(0x10c0), b0, m1),
                                mulmod(XI_MINUS_1, mulmod(mload(0x10e0), b5, m1), m1)
                            )
                        ),
                        m1
                    )
                )
            }
            // w^5 at −i
            assembly ("memory-safe") {
                mstore(
                    0x1320,
                    addmod(
                        add(
                            mulmod(mload(0x1040), b5, m1),
                            add(mulmod(mload(0x1060), b4, m1), mulmod(mload(0x1080), b3, m1))
                        ),
                        add(
                            mulmod(mload(0x10a0), b2, m1),
                            add(mulmod(mload(0x10c0), b1, m1), mulmod(mload(0x10e0), b0, m1))
                        ),
                        m1
                    )
                )
            }
        }
        {
            uint256 b0;
            uint256 b1;
            uint256 b2;
            uint256 b3;
            uint256 b4;
            uint256 b5;
            assembly ("memory-safe") {
                b0 := mload(0xc80)
                b1 := mload(0xca0)
                b2 := mload(0xcc0)
                b3 := mload(0xce0)
                b4 := mload(0xd00)
                b5 := mload(0xd20)
            }
            // w^0 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        mulmod(mload(0xf80), b0, m1),
                        mulmod(
                            XI_PLUS_1,
                            addmod(
                                add(
                                    mulmod(mload(0xfa0), b5, m1),
                                    add(mulmod(mload(0xfc0), b4, m1), mulmod(mload(0xfe0), b3, m1))
                                ),
                                add(mulmod(mload(0x1000), b2, m1), mulmod(mload(0x1020), b1, m1)),
                                m1
                            ),
                            m1
                        ),
                        m1
                    )
                let y := mload(0x1280)
                mstore(0x800, addmod(x, y, m1))
                mstore(0x820, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
            }
            // w^1 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        add(mulmod(mload(0xf80), b1, m1), mulmod(mload(0xfa0), b0, m1)),
                        mulmod(
                            XI_PLUS_1,
                            addmod(
                                add(
                                    mulmod(mload(0xfc0), b5, m1),
                                    add(mulmod(mload(0xfe0), b4, m1), mulmod(mload(0x1000), b3, m1))
                                ),
                                mulmod(mload(0x1020), b2, m1),
                                m1
                            ),
                            m1
                        ),
                        m1
                    )
                let y := mload(0x12a0)
                mstore(0x840, addmod(x, y, m1))
                mstore(0x860, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
            }
            // w^2 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        add(mulmod(mload(0xf80), b2, m1), mulmod(mload(0xfa0), b1, m1)),
                        add(
                            mulmod(mload(0xfc0), b0, m1),
                            mulmod(
                                XI_PLUS_1,
                                add(
                                    mulmod(mload(0xfe0), b5, m1),
                                    add(mulmod(mload(0x1000), b4, m1), mulmod(mload(0x1020), b3, m1))
                                ),
                                m1
                            )
                        ),
                        m1
                    )
                let y := mload(0x12c0)
                mstore(0x880, addmod(x, y, m1))
                mstore(0x8a0, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
            }
            // w^3 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        add(
                            mulmod(mload(0xf80), b3, m1),
                            add(mulmod(mload(0xfa0), b2, m1), mulmod(mload(0xfc0), b1, m1))
                        ),
                        add(
                            mulmod(mload(0xfe0), b0, m1),
                            mulmod(
                                XI_PLUS_1,
                                add(mulmod(mload(0x1000), b5, m1), mulmod(mload(0x1020), b4, m1)),
                                m1
                            )
                        ),
                        m1
                    )
                let y := mload(0x12e0)
                mstore(0x8c0, addmod(x, y, m1))
                mstore(0x8e0, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
            }
            // w^4 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        add(
                            mulmod(mload(0xf80), b4, m1),
                            add(mulmod(mload(0xfa0), b3, m1), mulmod(mload(0xfc0), b2, m1))
                        ),
                        add(
                            mulmod(mload(0xfe0), b1, m1),
                            add(
                                mulmod(mload(0x1000), b0, m1),
                                mulmod(XI_PLUS_1, mulmod(mload(0x1020), b5, m1), m1)
                            )
                        ),
                        m1
                    )
                let y := mload(0x1300)
                mstore(0x900, addmod(x, y, m1))
                mstore(0x920, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
            }
            // w^5 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        add(
                            mulmod(mload(0xf80), b5, m1),
                            add(mulmod(mload(0xfa0), b4, m1), mulmod(mload(0xfc0), b3, m1))
                        ),
                        add(
                            mulmod(mload(0xfe0), b2, m1),
                            add(mulmod(mload(0x1000), b1, m1), mulmod(mload(0x1020), b0, m1))
                        ),
                        m1
                    )
                let y := mload(0x1320)
                mstore(0x940, addmod(x, y, m1))
                mstore(0x960, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
            }
        }
    }

    /// @dev T's residues modulo M2, likewise.
    function multiply2(uint256 m2) private pure {
        assembly ("memory-safe") {
            let x := mload(0x500)
            let y := mulmod(mload(0x520), ROOT_2, m2)
            mstore(0x1100, addmod(x, y, m2))
            mstore(0x11c0, addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0x540)
            let y := mulmod(mload(0x560), ROOT_2, m2)
            mstore(0x1120, addmod(x, y, m2))
            mstore(0x11e0, addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0x580)
            let y := mulmod(mload(0x5a0), ROOT_2, m2)
            mstore(0x1140, addmod(x, y, m2))
            mstore(0x1200, addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0x5c0)
            let y := mulmod(mload(0x5e0), ROOT_2, m2)
            mstore(0x1160, addmod(x, y, m2))
            mstore(0x1220, addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0x600)
            let y := mulmod(mload(0x620), ROOT_2, m2)
            mstore(0x1180, addmod(x, y, m2))
            mstore(0x1240, addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0x640)
            let y := mulmod(mload(0x660), ROOT_2, m2)
            mstore(0x11a0, addmod(x, y, m2))
            mstore(0x1260, addmod(x, sub(m2, y), m2))
        }
        {
            uint256 b0;
            uint256 b1;
            uint256 b2;
            uint256 b3;
            uint256 b4;
            uint256 b5;
            assembly ("memory-safe") {
                b0 := mload(0xec0)
                b1 := mload(0xee0)
                b2 := mload(0xf00)
                b3 := mload(0xf20)
                b4 := mload(0xf40)
                b5 := mload(0xf60)
            }
            // w^0 at −i
            assembly ("memory-safe") {
                mstore(
                    0x1280,
                    addmod(
                        mulmod(mload(0x11c0), b0, m2),
                        mulmod(
                            XI_MINUS_2,
                            addmod(
                                mulmod(mload(0x11e0), b5, m2),
                                addmod(
                                    mulmod(mload(0x1200), b4, m2),
                                    addmod(
                                        mulmod(mload(0x1220), b3, m2),
                                        addmod(
                                            mulmod(mload(0x1240), b2, m2),
                                            mulmod(mload(0x1260), b1, m2),
                                            m2
                                        ),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                )
            }
            // w^1 at −i
            assembly ("memory-safe") {
                mstore(
                    0x12a0,
                    addmod(
                        mulmod(mload(0x11c0), b1, m2),
                        addmod(
                            mulmod(mload(0x11e0), b0, m2),
                            mulmod(
                                XI_MINUS_2,
                                addmod(
                                    mulmod(mload(0x1200), b5, m2),
                                    addmod(
                                        mulmod(mload(0x1220), b4, m2),
                                        addmod(
                                            mulmod(mload(0x1240), b3, m2),
                                            mulmod(mload(0x1260), b2, m2),
                                            m2
                                        ),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                )
            }
            // w^2 at −i
            assembly ("memory-safe") {
                mstore(
                    0x12c0,
                    addmod(
                        mulmod(mload(0x11c0), b2, m2),
                        addmod(
                            mulmod(mload(0x11e0), b1, m2),
                            addmod(
                                mulmod(mload(0x1200), b0, m2),
                                mulmod(
                                    XI_MINUS_2,
                                    addmod(
                                        mulmod(mload(0x1220), b5, m2),
                                        addmod(
                                            mulmod(mload(0x1240), b4, m2),
                                            mulmod(mload(0x1260), b3, m2),
                                            m2
                                        ),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                )
            }
            // w^3 at −i
            assembly ("memory-safe") {
                mstore(
                    0x12e0,
                    addmod(
                        mulmod(mload(0x11c0), b3, m2),
                        addmod(
                            mulmod(mload(0x11e0), b2, m2),
                            addmod(
                                mulmod(mload(0x1200), b1, m2),
                                addmod(
                                    mulmod(mload(0x1220), b0, m2),
                                    mulmod(
                                        XI_MINUS_2,
                                        addmod(
                                            mulmod(mload(0x1240), b5, m2),
                                            mulmod(mload(0x1260), b4, m2),
                                            m2
                                        ),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                )
            }
            // w^4 at −i
            assembly ("memory-safe") {
                mstore(
                    0x1300,
                    addmod(
                        mulmod(mload(0x11c0), b4, m2),
                        addmod(
                            mulmod(mload(0x11e0), b3, m2),
                            addmod(
                                mulmod(mload(0x1200), b2, m2),
                                addmod(
                                    mulmod(mload(0x1220), b1, m2),
                                    addmod(
                                        mulmod(mload(0x1240), b0, m2),
                                        mulmod(XI_MINUS_2, mulmod(mload(0x1260), b5, m2), m2),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                )
            }
            // w^5 at −i
            assembly ("memory-safe") {
                mstore(
                    0x1320,
                    addmod(
                        mulmod(mload(0x11c0), b5, m2),
                        addmod(
                            mulmod(mload(0x11e0), b4, m2),
                            addmod(
                                mulmod(mload(0x1200), b3, m2),
                                addmod(
                                    mulmod(mload(0x1220), b2, m2),
                                    addmod(mulmod(mload(0x1240), b1, m2), mulmod(mload(0x1260), b0, m2), m2),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                )
            }
        }
        {
            uint256 b0;
            uint256 b1;
            uint256 b2;
            uint256 b3;
            uint256 b4;
            uint256 b5;
            assembly ("memory-safe") {
                b0 := mload(0xe00)
                b1 := mload(0xe20)
                b2 := mload(0xe40)
                b3 := mload(0xe60)
                b4 := mload(0xe80)
                b5 := mload(0xea0)
            }
            // w^0 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        mulmod(mload(0x1100), b0, m2),
                        mulmod(
                            XI_PLUS_2,
                            addmod(
                                mulmod(mload(0x1120), b5, m2),
                                addmod(
                                    mulmod(mload(0x1140), b4, m2),
                                    addmod(
                                        mulmod(mload(0x1160), b3, m2),
                                        addmod(
                                            mulmod(mload(0x1180), b2, m2),
                                            mulmod(mload(0x11a0), b1, m2),
                                            m2
                                        ),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                let y := mload(0x1280)
                mstore(0x980, addmod(x, y, m2))
                mstore(0x9a0, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
            }
            // w^1 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        mulmod(mload(0x1100), b1, m2),
                        addmod(
                            mulmod(mload(0x1120), b0, m2),
                            mulmod(
                                XI_PLUS_2,
                                addmod(
                                    mulmod(mload(0x1140), b5, m2),
                                    addmod(
                                        mulmod(mload(0x1160), b4, m2),
                                        addmod(
                                            mulmod(mload(0x1180), b3, m2),
                                            mulmod(mload(0x11a0), b2, m2),
                                            m2
                                        ),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                let y := mload(0x12a0)
                mstore(0x9c0, addmod(x, y, m2))
                mstore(0x9e0, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
            }
            // w^2 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        mulmod(mload(0x1100), b2, m2),
                        addmod(
                            mulmod(mload(0x1120), b1, m2),
                            addmod(
                                mulmod(mload(0x1140), b0, m2),
                                mulmod(
                                    XI_PLUS_2,
                                    addmod(
                                        mulmod(mload(0x1160), b5, m2),
                                        addmod(
                                            mulmod(mload(0x1180), b4, m2),
                                            mulmod(mload(0x11a0), b3, m2),
                                            m2
                                        ),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                let y := mload(0x12c0)
                mstore(0xa00, addmod(x, y, m2))
                mstore(0xa20, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
            }
            // w^3 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        mulmod(mload(0x1100), b3, m2),
                        addmod(
                            mulmod(mload(0x1120), b2, m2),
                            addmod(
                                mulmod(mload(0x1140), b1, m2),
                                addmod(
                                    mulmod(mload(0x1160), b0, m2),
                                    mulmod(
                                        XI_PLUS_2,
                                        addmod(
                                            mulmod(mload(0x1180), b5, m2),
                                            mulmod(mload(0x11a0), b4, m2),
                                            m2
                                        ),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                let y := mload(0x12e0)
                mstore(0xa40, addmod(x, y, m2))
                mstore(0xa60, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
            }
            // w^4 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        mulmod(mload(0x1100), b4, m2),
                        addmod(
                            mulmod(mload(0x1120), b3, m2),
                            addmod(
                                mulmod(mload(0x1140), b2, m2),
                                addmod(
                                    mulmod(mload(0x1160), b1, m2),
                                    addmod(
                                        mulmod(mload(0x1180), b0, m2),
                                        mulmod(XI_PLUS_2, mulmod(mload(0x11a0), b5, m2), m2),
                                        m2
                                    ),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                let y := mload(0x1300)
                mstore(0xa80, addmod(x, y, m2))
                mstore(0xaa0, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
            }
            // w^5 at i
            assembly ("memory-safe") {
                let x :=
                    addmod(
                        mulmod(mload(0x1100), b5, m2),
                        addmod(
                            mulmod(mload(0x1120), b4, m2),
                            addmod(
                                mulmod(mload(0x1140), b3, m2),
                                addmod(
                                    mulmod(mload(0x1160), b2, m2),
                                    addmod(mulmod(mload(0x1180), b1, m2), mulmod(mload(0x11a0), b0, m2), m2),
                                    m2
                                ),
                                m2
                            ),
                            m2
                        ),
                        m2
                    )
                let y := mload(0x1320)
                mstore(0xac0, addmod(x, y, m2))
                mstore(0xae0, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
            }
        }
    }

    function operandWith(uint256 to, uint256 m1, uint256 m2) private pure {
        assembly ("memory-safe") {
            mcopy(to, 0x200, 0x180)
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x380), HALF_1, m1)
            let y := mulmod(mload(0x3a0), HALF_ROOT_1, m1)
            mstore(add(to, 0x180), addmod(x, y, m1))
            mstore(add(to, 0x240), addmod(x, sub(m1, y), m1))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x3c0), HALF_1, m1)
            let y := mulmod(mload(0x3e0), HALF_ROOT_1, m1)
            mstore(add(to, 0x1a0), addmod(x, y, m1))
            mstore(add(to, 0x260), addmod(x, sub(m1, y), m1))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x400), HALF_1, m1)
            let y := mulmod(mload(0x420), HALF_ROOT_1, m1)
            mstore(add(to, 0x1c0), addmod(x, y, m1))
            mstore(add(to, 0x280), addmod(x, sub(m1, y), m1))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x440), HALF_1, m1)
            let y := mulmod(mload(0x460), HALF_ROOT_1, m1)
            mstore(add(to, 0x1e0), addmod(x, y, m1))
            mstore(add(to, 0x2a0), addmod(x, sub(m1, y), m1))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x480), HALF_1, m1)
            let y := mulmod(mload(0x4a0), HALF_ROOT_1, m1)
            mstore(add(to, 0x200), addmod(x, y, m1))
            mstore(add(to, 0x2c0), addmod(x, sub(m1, y), m1))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x4c0), HALF_1, m1)
            let y := mulmod(mload(0x4e0), HALF_ROOT_1, m1)
            mstore(add(to, 0x220), addmod(x, y, m1))
            mstore(add(to, 0x2e0), addmod(x, sub(m1, y), m1))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x500), HALF_2, m2)
            let y := mulmod(mload(0x520), HALF_ROOT_2, m2)
            mstore(add(to, 0x300), addmod(x, y, m2))
            mstore(add(to, 0x3c0), addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x540), HALF_2, m2)
            let y := mulmod(mload(0x560), HALF_ROOT_2, m2)
            mstore(add(to, 0x320), addmod(x, y, m2))
            mstore(add(to, 0x3e0), addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x580), HALF_2, m2)
            let y := mulmod(mload(0x5a0), HALF_ROOT_2, m2)
            mstore(add(to, 0x340), addmod(x, y, m2))
            mstore(add(to, 0x400), addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x5c0), HALF_2, m2)
            let y := mulmod(mload(0x5e0), HALF_ROOT_2, m2)
            mstore(add(to, 0x360), addmod(x, y, m2))
            mstore(add(to, 0x420), addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x600), HALF_2, m2)
            let y := mulmod(mload(0x620), HALF_ROOT_2, m2)
            mstore(add(to, 0x380), addmod(x, y, m2))
            mstore(add(to, 0x440), addmod(x, sub(m2, y), m2))
        }
        assembly ("memory-safe") {
            let x := mulmod(mload(0x640), HALF_2, m2)
            let y := mulmod(mload(0x660), HALF_ROOT_2, m2)
            mstore(add(to, 0x3a0), addmod(x, y, m2))
            mstore(add(to, 0x460), addmod(x, sub(m2, y), m2))
        }
    }

    function conjugateWith(uint256 m1, uint256 m2) private pure {
        assembly ("memory-safe") {
            mstore(0xb40, sub(0, mload(0xb40)))
            mstore(0xb60, sub(0, mload(0xb60)))
            mstore(0xca0, sub(m1, mload(0xca0)))
            mstore(0xd60, sub(m1, mload(0xd60)))
            mstore(0xe20, sub(m2, mload(0xe20)))
            mstore(0xee0, sub(m2, mload(0xee0)))
            mstore(0xbc0, sub(0, mload(0xbc0)))
            mstore(0xbe0, sub(0, mload(0xbe0)))
            mstore(0xce0, sub(m1, mload(0xce0)))
            mstore(0xda0, sub(m1, mload(0xda0)))
            mstore(0xe60, sub(m2, mload(0xe60)))
            mstore(0xf20, sub(m2, mload(0xf20)))
            mstore(0xc40, sub(0, mload(0xc40)))
            mstore(0xc60, sub(0, mload(0xc60)))
            mstore(0xd20, sub(m1, mload(0xd20)))
            mstore(0xde0, sub(m1, mload(0xde0)))
            mstore(0xea0, sub(m2, mload(0xea0)))
            mstore(0xf60, sub(m2, mload(0xf60)))
        }
    }
}
