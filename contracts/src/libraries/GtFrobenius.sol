// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { GtResidues, M1, M2, NEGATED_ROOT_1, NEGATED_ROOT_2 } from "./GtResidues.sol";

/// @title Powers of the Frobenius map on GT
/// @notice In GT the p-th power is the x-th, x = −0xd201000000010000 (r divides p − x). So ψ, the conjugate of the
/// Frobenius map, is the |x|-th power:
/// ψ^j(Σ a_k w^k) = Σ conj^j(a_k)·γ_jk w^k with γ_jk = (−1)^(jk)·ξ^(k(p^j − 1)/6).
/// @dev A loop that reduces only what needs it (some γ are ±1 or u) was tried: 11,600 to 14,800 gas for an image.
library GtFrobenius {
    /// @notice A ← ψ^j(B) for j in 1 … 3. 6,500 gas.
    function image(uint256 j) internal pure {
        imageWith(j, M1, M2);
        GtResidues.reduce();
    }

    /// @dev T's residues; modulo M1 and M2 from the values at ±i, which conjugation swaps.
    function imageWith(uint256 j, uint256 m1, uint256 m2) private pure {
        uint256 c;
        uint256 odd;
        assembly ("memory-safe") {
            c := add(0x1900, mul(sub(j, 1), 0x480))
            odd := and(j, 1)
        }
        assembly ("memory-safe") {
            let x := mload(0xb00)
            let y := mload(0xb20)
            if odd { y := sub(0, y) }
            let gx := mload(add(c, 0x0))
            let gy := mload(add(c, 0x20))
            mstore(0x680, sub(mul(x, gx), mul(y, gy)))
            mstore(0x6a0, add(mul(x, gy), mul(y, gx)))
        }
        assembly ("memory-safe") {
            let x := mload(0xb40)
            let y := mload(0xb60)
            if odd { y := sub(0, y) }
            let gx := mload(add(c, 0x40))
            let gy := mload(add(c, 0x60))
            mstore(0x6c0, sub(mul(x, gx), mul(y, gy)))
            mstore(0x6e0, add(mul(x, gy), mul(y, gx)))
        }
        assembly ("memory-safe") {
            let x := mload(0xb80)
            let y := mload(0xba0)
            if odd { y := sub(0, y) }
            let gx := mload(add(c, 0x80))
            let gy := mload(add(c, 0xa0))
            mstore(0x700, sub(mul(x, gx), mul(y, gy)))
            mstore(0x720, add(mul(x, gy), mul(y, gx)))
        }
        assembly ("memory-safe") {
            let x := mload(0xbc0)
            let y := mload(0xbe0)
            if odd { y := sub(0, y) }
            let gx := mload(add(c, 0xc0))
            let gy := mload(add(c, 0xe0))
            mstore(0x740, sub(mul(x, gx), mul(y, gy)))
            mstore(0x760, add(mul(x, gy), mul(y, gx)))
        }
        assembly ("memory-safe") {
            let x := mload(0xc00)
            let y := mload(0xc20)
            if odd { y := sub(0, y) }
            let gx := mload(add(c, 0x100))
            let gy := mload(add(c, 0x120))
            mstore(0x780, sub(mul(x, gx), mul(y, gy)))
            mstore(0x7a0, add(mul(x, gy), mul(y, gx)))
        }
        assembly ("memory-safe") {
            let x := mload(0xc40)
            let y := mload(0xc60)
            if odd { y := sub(0, y) }
            let gx := mload(add(c, 0x140))
            let gy := mload(add(c, 0x160))
            mstore(0x7c0, sub(mul(x, gx), mul(y, gy)))
            mstore(0x7e0, add(mul(x, gy), mul(y, gx)))
        }
        assembly ("memory-safe") {
            let x := mload(0xc80)
            let y := mload(0xd40)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x180)), m1)
            y := mulmod(y, mload(add(c, 0x240)), m1)
            mstore(0x800, addmod(x, y, m1))
            mstore(0x820, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
        }
        assembly ("memory-safe") {
            let x := mload(0xca0)
            let y := mload(0xd60)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x1a0)), m1)
            y := mulmod(y, mload(add(c, 0x260)), m1)
            mstore(0x840, addmod(x, y, m1))
            mstore(0x860, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
        }
        assembly ("memory-safe") {
            let x := mload(0xcc0)
            let y := mload(0xd80)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x1c0)), m1)
            y := mulmod(y, mload(add(c, 0x280)), m1)
            mstore(0x880, addmod(x, y, m1))
            mstore(0x8a0, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
        }
        assembly ("memory-safe") {
            let x := mload(0xce0)
            let y := mload(0xda0)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x1e0)), m1)
            y := mulmod(y, mload(add(c, 0x2a0)), m1)
            mstore(0x8c0, addmod(x, y, m1))
            mstore(0x8e0, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
        }
        assembly ("memory-safe") {
            let x := mload(0xd00)
            let y := mload(0xdc0)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x200)), m1)
            y := mulmod(y, mload(add(c, 0x2c0)), m1)
            mstore(0x900, addmod(x, y, m1))
            mstore(0x920, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
        }
        assembly ("memory-safe") {
            let x := mload(0xd20)
            let y := mload(0xde0)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x220)), m1)
            y := mulmod(y, mload(add(c, 0x2e0)), m1)
            mstore(0x940, addmod(x, y, m1))
            mstore(0x960, mulmod(NEGATED_ROOT_1, add(x, sub(m1, y)), m1))
        }
        assembly ("memory-safe") {
            let x := mload(0xe00)
            let y := mload(0xec0)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x300)), m2)
            y := mulmod(y, mload(add(c, 0x3c0)), m2)
            mstore(0x980, addmod(x, y, m2))
            mstore(0x9a0, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0xe20)
            let y := mload(0xee0)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x320)), m2)
            y := mulmod(y, mload(add(c, 0x3e0)), m2)
            mstore(0x9c0, addmod(x, y, m2))
            mstore(0x9e0, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0xe40)
            let y := mload(0xf00)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x340)), m2)
            y := mulmod(y, mload(add(c, 0x400)), m2)
            mstore(0xa00, addmod(x, y, m2))
            mstore(0xa20, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0xe60)
            let y := mload(0xf20)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x360)), m2)
            y := mulmod(y, mload(add(c, 0x420)), m2)
            mstore(0xa40, addmod(x, y, m2))
            mstore(0xa60, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0xe80)
            let y := mload(0xf40)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x380)), m2)
            y := mulmod(y, mload(add(c, 0x440)), m2)
            mstore(0xa80, addmod(x, y, m2))
            mstore(0xaa0, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
        }
        assembly ("memory-safe") {
            let x := mload(0xea0)
            let y := mload(0xf60)
            if odd {
                let z := x
                x := y
                y := z
            }
            x := mulmod(x, mload(add(c, 0x3a0)), m2)
            y := mulmod(y, mload(add(c, 0x460)), m2)
            mstore(0xac0, addmod(x, y, m2))
            mstore(0xae0, mulmod(NEGATED_ROOT_2, addmod(x, sub(m2, y), m2), m2))
        }
    }

    /// @notice Writes the constants γ_jk, as operands in Montgomery's form, that `image` reads.
    function constants() internal pure {
        assembly ("memory-safe") {
            mstore(0x1900, 0x15efebb5d396d7cf82383087033108464532383fa8eaff4e967d3988a62b6c9d)
            mstore(0x1920, 0x0)
            mstore(0x1940, 0xb324392e08eb02ecc784c561f6fc476af1de902985d94f4b6e25fdc3fc3a24a7)
            mstore(0x1960, 0xb1531256ea9a0fd29fac0d3effb4aeb92ccd6fd52b7ab0b44bd9023c03c58604)
            mstore(0x1980, 0x0)
            mstore(0x19a0, 0x34fe84b98dd31bc4daf265980007459eef1466aa6fbfdb163c6678062629f0f7)
            mstore(0x19c0, 0xe7cc8f5f5f735e38a43089efed00e2747c9454cdb302c8e16d113c91fd496595)
            mstore(0x19e0, 0xe7cc8f5f5f735e38a43089efed00e2747c9454cdb302c8e16d113c91fd496595)
            mstore(0x1a00, 0x4aee706f6169f3945d2a961f03384de534469eea18aada64d2e3b18ecc555d94)
            mstore(0x1a20, 0x0)
            mstore(0x1a40, 0x36797d0874d94e6604847cb0ed4c33bb4fc6e4f88788182d21383a55f983df91)
            mstore(0x1a60, 0x2dfdce7c7eabc45962ac55f00964c268cee51b0629cbe7d298c6c5aa067bcb1a)
            mstore(0x1a80, 0x15efebb5d396d7cf823830870331084647fd957a313956139135069094798359)
            mstore(0x1aa0, 0x2a4ca46aa43aa1eed706f2dda504b76c8778ecfe1522da8de80be6066684fecc)
            mstore(0x1ac0, 0x2cc352976ab14090c3a80efcef03c96a9fbe6acaeeb97708f8b949317672da0a)
            mstore(0x1ae0, 0xd64d2bbefb788818d411026e4432c854b80acf330873966874c8c5b11fccf8b)
            mstore(0x1b00, 0x4aee706f6169f3945d2a961f03384de547eadfff379d6138df22845c1888ff70)
            mstore(0x1b20, 0x325c253f396055e5bc2a1c2f97eef89a5f31004fd1da7902992b4e165655bba6)
            mstore(0x1b40, 0x15efebb5d396d7cf823830870331084647fd957a313956139135069094798359)
            mstore(0x1b60, 0x3bfbcdf16d9b63eab80297e648f3d769834cb268d9d01dc6ccf5eacc1bf4d403)
            mstore(0x1b80, 0x289202bdeaa414c491ad465866518beab596ea8a669bde4c5c9c0c23dee27b4b)
            mstore(0x1ba0, 0x1789a158248489451075590e4b13edb91d7e2523f6cae63f4e9133458be39e9e)
            mstore(0x1bc0, 0x4aee706f6169f3945d2a961f03384de547eadfff379d6138df22845c1888ff70)
            mstore(0x1be0, 0x3a96d4d1b05246e64cdedd3242a96edc4de3f807196d7c6e92299d9aee1880f8)
            mstore(0x1c00, 0x4881227609ab76ee9ce0c600d530da1a7df8e2de98b090b4840cff49941c7e2f)
            mstore(0x1c20, 0xdba4ba29cc0db69ff09529497c824595a792c1c447a2fade09f254ed89f4359f)
            mstore(0x1c40, 0x9ec00956681773e44cfdb782851641256ea0bf9929070451d529993044b0c0db)
            mstore(0x1c60, 0xc8d08902cabe204bae0a994f8155ae124b4a939e14a588256a93b681687b6fef)
            mstore(0x1c80, 0x1f202d65b794c47cc59961cb7b8eec24457d907a3403cc602197b54f51b81bb9)
            mstore(0x1ca0, 0xa6de41b5fee5fa3c12aede43fa4a9e3409f69e90bbf2621a26c57720cea88816)
            mstore(0x1cc0, 0x4881227609ab76ee9ce0c600d530da1a7df8e2de98b090b4840cff49941c7e2f)
            mstore(0x1ce0, 0x32a9ae6a7866956fbe9a8ba87a1c54057ad4b9abf2d77d8e2bf2779d92381a30)
            mstore(0x1d00, 0x413ff6a997e88c1bb302487d7ae9beda915f4066d6f8fbae2ad666cfbb4f3d06)
            mstore(0x1d20, 0x223811725f8ff9581732cb78f7ad3ef5311b7635597af57a964879bfce60b1ba)
            mstore(0x1d40, 0x1f202d65b794c47cc59961cb7b8eec24457d907a3403cc602197b54f51b81bb9)
            mstore(0x1d60, 0x2b39d7412762c5813f03a5b36ec78dfb6b25531cd369e1103394d473a8968105)
            mstore(0x1d80, 0x15efebb5d396d7cf82383087033108464532383fa8eaff4e967d3988a62b6c9d)
            mstore(0x1da0, 0x0)
            mstore(0x1dc0, 0x2f78c6cb65b1f6fa8c3e6d08f6a9b0852f979954419424e97d9887f9d9d5b9b4)
            mstore(0x1de0, 0x0)
            mstore(0x1e00, 0x1988db15921b1f2b0a063c81f378a83eea65611498a9259ae71b4e7133aa4d17)
            mstore(0x1e20, 0x0)
            mstore(0x1e40, 0x4e875fcf1fee3aefe4f8a219f37fedddd979c7bf086900b12381c67759d43e0e)
            mstore(0x1e60, 0x0)
            mstore(0x1e80, 0x34fe84b98dd31bc4daf265980007459eef1466aa6fbfdb163c6678062629f0f7)
            mstore(0x1ea0, 0x0)
            mstore(0x1ec0, 0x4aee706f6169f3945d2a961f03384de534469eea18aada64d2e3b18ecc555d94)
            mstore(0x1ee0, 0x0)
            mstore(0x1f00, 0x15efebb5d396d7cf823830870331084647fd957a313956139135069094798359)
            mstore(0x1f20, 0x2f78c6cb65b1f6fa8c3e6d08f6a9b08538bfc763e46fdb74b72d29eabf3bdb6b)
            mstore(0x1f40, 0x1988db15921b1f2b0a063c81f378a83ef0c231e9b336856125f8235a2ac25812)
            mstore(0x1f60, 0x4e875fcf1fee3aefe4f8a219f37fedddf0af7c6eb99a908673e5a125aed1d429)
            mstore(0x1f80, 0x34fe84b98dd31bc4daf265980007459effed4a8506640b254ded7dcb840f7c17)
            mstore(0x1fa0, 0x4aee706f6169f3945d2a961f03384de547eadfff379d6138df22845c1888ff70)
            mstore(0x1fc0, 0x15efebb5d396d7cf823830870331084647fd957a313956139135069094798359)
            mstore(0x1fe0, 0x2f78c6cb65b1f6fa8c3e6d08f6a9b08538bfc763e46fdb74b72d29eabf3bdb6b)
            mstore(0x2000, 0x1988db15921b1f2b0a063c81f378a83ef0c231e9b336856125f8235a2ac25812)
            mstore(0x2020, 0x4e875fcf1fee3aefe4f8a219f37fedddf0af7c6eb99a908673e5a125aed1d429)
            mstore(0x2040, 0x34fe84b98dd31bc4daf265980007459effed4a8506640b254ded7dcb840f7c17)
            mstore(0x2060, 0x4aee706f6169f3945d2a961f03384de547eadfff379d6138df22845c1888ff70)
            mstore(0x2080, 0x4881227609ab76ee9ce0c600d530da1a7df8e2de98b090b4840cff49941c7e2f)
            mstore(0x20a0, 0x4d006a197653856ce8a4af16dce99b2fcd541c2f714c1dc550a8a296304917b4)
            mstore(0x20c0, 0x47f47a36ca80e7e4bc3e91607b8c1154f5b3950d89b8d10cc9ba34c9c2c9985)
            mstore(0x20e0, 0xbb1e52931a915c0c747c84e0ae16d31f16dfe6ec73eec8bc6a26595259c834f0)
            mstore(0x2100, 0xb69f0aefade94d8e28b89bcaa65e1209c784ad9b9b533bab9d8ab605bd9b9b6b)
            mstore(0x2120, 0x1f202d65b794c47cc59961cb7b8eec24457d907a3403cc602197b54f51b81bb9)
            mstore(0x2140, 0x4881227609ab76ee9ce0c600d530da1a7df8e2de98b090b4840cff49941c7e2f)
            mstore(0x2160, 0x4d006a197653856ce8a4af16dce99b2fcd541c2f714c1dc550a8a296304917b4)
            mstore(0x2180, 0x47f47a36ca80e7e4bc3e91607b8c1154f5b3950d89b8d10cc9ba34c9c2c9985)
            mstore(0x21a0, 0xbb1e52931a915c0c747c84e0ae16d31f16dfe6ec73eec8bc6a26595259c834f0)
            mstore(0x21c0, 0xb69f0aefade94d8e28b89bcaa65e1209c784ad9b9b533bab9d8ab605bd9b9b6b)
            mstore(0x21e0, 0x1f202d65b794c47cc59961cb7b8eec24457d907a3403cc602197b54f51b81bb9)
            mstore(0x2200, 0x15efebb5d396d7cf82383087033108464532383fa8eaff4e967d3988a62b6c9d)
            mstore(0x2220, 0x0)
            mstore(0x2240, 0x7caabc259411b486c30048b109b013afa217ab30fe51371e4cedc36e02b64516)
            mstore(0x2260, 0xe7cc8f5f5f735e38a43089efed00e2747c9454cdb302c8e16d113c91fd496595)
            mstore(0x2280, 0x0)
            mstore(0x22a0, 0x15efebb5d396d7cf82383087033108464532383fa8eaff4e967d3988a62b6c9d)
            mstore(0x22c0, 0x7caabc259411b486c30048b109b013afa217ab30fe51371e4cedc36e02b64516)
            mstore(0x22e0, 0x7caabc259411b486c30048b109b013afa217ab30fe51371e4cedc36e02b64516)
            mstore(0x2300, 0x4e875fcf1fee3aefe4f8a219f37fedddd979c7bf086900b12381c67759d43e0e)
            mstore(0x2320, 0x0)
            mstore(0x2340, 0xe7cc8f5f5f735e38a43089efed00e2747c9454cdb302c8e16d113c91fd496595)
            mstore(0x2360, 0x7caabc259411b486c30048b109b013afa217ab30fe51371e4cedc36e02b64516)
            mstore(0x2380, 0x15efebb5d396d7cf823830870331084647fd957a313956139135069094798359)
            mstore(0x23a0, 0x4cedaa2ccf00897a56bb7992ab9d086b1b2eecc4f409005ab6897470b767b8e4)
            mstore(0x23c0, 0x1fc52da53104954189b79c6a4dba36f92ec203aec24d105457a9f2a5f017b8b5)
            mstore(0x23e0, 0x164f91fbd491d046b23bab4064a688d3568ba61c062a1583acc4d312ddc530b)
            mstore(0x2400, 0x4e875fcf1fee3aefe4f8a219f37fedddf0af7c6eb99a908673e5a125aed1d429)
            mstore(0x2420, 0x1731770433557160f6fea69d9445e1fcbb0fcfe552362fb960e4ba70ddc6bf07)
            mstore(0x2440, 0x15efebb5d396d7cf823830870331084647fd957a313956139135069094798359)
            mstore(0x2460, 0x1bd2373ae7834e8849a6d24bd18744997d70fa064f757de2878c605dbf932a2)
            mstore(0x2480, 0x359027b02450c013cb9db8eb079b1e5c269351a693084500fdab62af653d9ca0)
            mstore(0x24a0, 0x4d45d480c02fa15e70322c03626b14277d9d4203989db6e0a435ed456584987b)
            mstore(0x24c0, 0x4e875fcf1fee3aefe4f8a219f37fedddf0af7c6eb99a908673e5a125aed1d429)
            mstore(0x24e0, 0xdbcfd0fe0e6a065a6b7c2979b113841adef0231d51befec74f9052fc019af22)
            mstore(0x2500, 0x4881227609ab76ee9ce0c600d530da1a7df8e2de98b090b4840cff49941c7e2f)
            mstore(0x2520, 0x1676396c4acd9a2fa2a7f688b9a6e4463bd5395b32463f657eadedc1f840384)
            mstore(0x2540, 0x5c2026d8698f7fbb4918fe14a7e7d0685c584e907813afaaa4d1034ec4e03e0f)
            mstore(0x2560, 0x76fd7295103cfee7f96e5f50b54c60a0faf668f1f6d9c7df85da329e9a1992b)
            mstore(0x2580, 0xbb1e52931a915c0c747c84e0ae16d31f16dfe6ec73eec8bc6a26595259c834f0)
            mstore(0x25a0, 0xced8fc95571516973376ffdc011005d7f73ca69780eec0ad0b067acf32990596)
            mstore(0x25c0, 0x4881227609ab76ee9ce0c600d530da1a7df8e2de98b090b4840cff49941c7e2f)
            mstore(0x25e0, 0x3aceec06597eb2af6352b19201f1ff27498e362cf7f9d14b839fa21a85694330)
            mstore(0x2600, 0x83dfd92796708044b6e701eb58182f97a3a7b16f87ec50555b2efcb13b1fbfd2)
            mstore(0x2620, 0x34c67873cd27bc63dde64b058237a7619d9c23338bb098c3e32cddccbb4bad89)
            mstore(0x2640, 0xbb1e52931a915c0c747c84e0ae16d31f16dfe6ec73eec8bc6a26595259c834f0)
            mstore(0x2660, 0x1c2f9ddfd339030c91c664ec77f2e72f8529633bed31bcf2f5d5b57204431c13)
        }
    }
}
