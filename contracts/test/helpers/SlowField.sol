// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice F_p12 over BLS12-381's field a second time, as slow and as plain as it can be: the product of two
/// coefficients reduced at once by MODEXP. Elements are 576 bytes, in tower order.
library SlowField {
    uint256 internal constant P_HIGH = 0x1a0111ea397fe69a4b1ba7b6434bacd7;
    uint256 internal constant P_LOW = 0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;

    struct Fp {
        uint256 high;
        uint256 low;
    }

    function add(Fp memory a, Fp memory b) internal pure returns (Fp memory c) {
        unchecked {
            c.low = a.low + b.low;
            c.high = a.high + b.high + (c.low < a.low ? 1 : 0);
            if (c.high > P_HIGH || (c.high == P_HIGH && c.low >= P_LOW)) {
                c.high -= P_HIGH + (c.low < P_LOW ? 1 : 0);
                c.low -= P_LOW;
            }
        }
    }

    function negate(Fp memory a) internal pure returns (Fp memory c) {
        if (a.high == 0 && a.low == 0) return a;
        unchecked {
            c.low = P_LOW - a.low;
            c.high = P_HIGH - a.high - (P_LOW < a.low ? 1 : 0);
        }
    }

    function mul(Fp memory a, Fp memory b) internal view returns (Fp memory) {
        (uint256 low, uint256 carry) = wide(a.low, b.low);
        (uint256 crossLow, uint256 crossHigh) = wide(a.high, b.low);
        (uint256 otherLow, uint256 otherHigh) = wide(a.low, b.high);
        uint256 high = crossHigh + otherHigh + a.high * b.high;
        unchecked {
            uint256 middle = carry + crossLow;
            if (middle < crossLow) high++;
            middle += otherLow;
            if (middle < otherLow) high++;
            return modulo(abi.encodePacked(high, middle, low));
        }
    }

    /// @dev a·b in two words.
    function wide(uint256 a, uint256 b) internal pure returns (uint256 low, uint256 high) {
        unchecked {
            low = a * b;
            uint256 all = mulmod(a, b, type(uint256).max);
            high = all - low - (all < low ? 1 : 0);
        }
    }

    function modulo(bytes memory number) internal view returns (Fp memory c) {
        (bool done, bytes memory result) = address(0x05)
            .staticcall(
                abi.encodePacked(
                    number.length, uint256(1), uint256(48), number, uint8(1), uint128(P_HIGH), P_LOW
                )
            );
        require(done && result.length == 48, "MODEXP");
        bytes32 first;
        bytes32 last;
        assembly ("memory-safe") {
            first := mload(add(result, 32))
            last := mload(add(result, 48))
        }
        c.high = uint256(first) >> 128;
        c.low = uint256(last);
    }

    /// @dev Coefficients by power of w, 2k for the real and 2k + 1 for the imaginary part.
    function decode(bytes memory encoded) internal pure returns (Fp[12] memory z) {
        for (uint256 i = 0; i < 12; i++) {
            bytes32 first;
            bytes32 last;
            assembly ("memory-safe") {
                let from := add(add(encoded, 32), mul(i, 48))
                first := mload(from)
                last := mload(add(from, 16))
            }
            z[place(i)] = Fp(uint256(first) >> 128, uint256(last));
        }
    }

    function encode(Fp[12] memory z) internal pure returns (bytes memory encoded) {
        for (uint256 i = 0; i < 12; i++) {
            encoded = abi.encodePacked(encoded, uint128(z[place(i)].high), z[place(i)].low);
        }
    }

    /// @dev c0.c0, c0.c1, c0.c2 belong to w^0, w^2, w^4; c1.c0, c1.c1, c1.c2 to w, w^3, w^5.
    function place(uint256 i) internal pure returns (uint256) {
        uint256 pair = i / 2;
        return 2 * (pair < 3 ? 2 * pair : 2 * (pair - 3) + 1) + i % 2;
    }

    /// @dev Gives back the memory that it takes on the way: many products follow each other in a power.
    function mul12(Fp[12] memory a, Fp[12] memory b) internal view returns (Fp[12] memory c) {
        uint256 free;
        assembly ("memory-safe") {
            free := mload(0x40)
        }
        for (uint256 i = 0; i < 6; i++) {
            for (uint256 j = 0; j < 6; j++) {
                Fp memory real = add(mul(a[2 * i], b[2 * j]), negate(mul(a[2 * i + 1], b[2 * j + 1])));
                Fp memory imaginary = add(mul(a[2 * i], b[2 * j + 1]), mul(a[2 * i + 1], b[2 * j]));
                if (i + j >= 6) (real, imaginary) = (add(real, negate(imaginary)), add(real, imaginary));
                uint256 k = (i + j) % 6;
                real = add(c[2 * k], real);
                imaginary = add(c[2 * k + 1], imaginary);
                (c[2 * k].high, c[2 * k].low) = (real.high, real.low);
                (c[2 * k + 1].high, c[2 * k + 1].low) = (imaginary.high, imaginary.low);
            }
        }
        assembly ("memory-safe") {
            mstore(0x40, free)
        }
    }

    function mul(bytes memory a, bytes memory b) internal view returns (bytes memory) {
        return encode(mul12(decode(a), decode(b)));
    }

    function one() internal pure returns (Fp[12] memory z) {
        z[0].low = 1;
    }

    /// @dev Square and multiply.
    function power(bytes memory base, uint256 exponent) internal view returns (bytes memory) {
        Fp[12] memory z = decode(base);
        Fp[12] memory result = one();
        for (uint256 i = 256; i != 0;) {
            i--;
            if (exponent >> i == 0) continue;
            result = mul12(result, result);
            if ((exponent >> i) & 1 == 1) result = mul12(result, z);
        }
        return encode(result);
    }
}
