// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Bls12381 } from "./Bls12381.sol";

/// @title Whether a singleton release is the right one for a ciphertext
/// @notice The release of a ciphertext whose header is C is the one point pd' of G1 with `e(pd', g2) = e(C, h_1)`
/// (docs/scheme.md); from it everybody computes the session key, if there is one.
///
/// **False only after a completed comparison** (S-2), whatever the 48 bytes of the release are: its encoding, the
/// curve's equation and the subgroup are checked here by arithmetic that completes, before a pairing sees it.
/// PAIRING and G1MSM refuse a point outside the subgroup by failing; G1ADD does not look at the subgroup. A C or
/// h_1 that is no point makes this revert.
/// @dev About 360,000 gas for a point: 2 × 40,000 for the square roots of the release and of C, 170,000 for the
/// subgroup, 103,000 for the pairing; 37,000 for what is no point.
library SingletonReleases {
    /// @dev Bytes of a compressed point of G1.
    uint256 internal constant BYTES = 48;

    address private constant MODEXP = address(0x05);
    address private constant PAIRING = address(0x0f);

    /// @dev The field's modulus p.
    bytes private constant MODULUS =
        hex"1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
    uint256 private constant MODULUS_HIGH = 0x1a0111ea397fe69a4b1ba7b6434bacd7;
    uint256 private constant MODULUS_LOW = 0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;
    /// @dev (p − 1) / 2.
    uint256 private constant HALF_HIGH = 0x0d0088f51cbff34d258dd3db21a5d66b;
    uint256 private constant HALF_LOW = 0xb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555;
    /// @dev (p + 1) / 4: a power of a square that is its root.
    bytes private constant ROOT_EXPONENT =
        hex"0680447a8e5ff9a692c6e9ed90d2eb35d91dd2e13ce144afd9cc34a83dac3d8907aaffffac54ffffee7fbfffffffeaab";
    /// @dev |z|, the curve's parameter without its sign: the groups' order is z⁴ − z² + 1.
    uint256 private constant PARAMETER = 0xd201000000010000;

    /// @notice The header of the ciphertext is no point of G1, or h_1 none of G2: nothing can be said.
    error NotComparable();

    /// @notice Whether `release` is the right one for the ciphertext with header `c`, 48 bytes each, under `h1`, 256
    /// bytes as in EIP-2537.
    function isRight(bytes memory release, bytes memory c, bytes memory h1) internal view returns (bool) {
        (bool isPoint, bytes memory left) = decompress(release);
        if (!isPoint || !inSubgroup(left)) return false;
        (bool comparable, bytes memory right) = decompress(c);
        if (!comparable || h1.length != Bls12381.G2_BYTES) revert NotComparable();
        (bool done, bytes memory result) =
            PAIRING.staticcall(abi.encodePacked(left, Bls12381.NEGATED_GENERATOR, right, h1));
        if (!done || result.length != 32) revert NotComparable();
        return abi.decode(result, (uint256)) == 1;
    }

    /// @notice The point of the curve, 128 bytes as in EIP-2537, that these 48 bytes are the compressed encoding of; it
    /// need not be in the subgroup. False for bytes that encode none, or the identity, or not canonically.
    function decompress(bytes memory compressed) internal view returns (bool isPoint, bytes memory point) {
        if (compressed.length != BYTES) return (false, "");
        uint256 high;
        uint256 low;
        assembly ("memory-safe") {
            high := shr(128, mload(add(compressed, 0x20)))
            low := mload(add(compressed, 0x30))
        }
        // The three top bits: compressed, not the identity, and which of the two roots.
        uint256 flags = high >> 125;
        if (flags & 6 != 4) return (false, "");
        high &= (1 << 125) - 1;
        if (!less(high, low, MODULUS_HIGH, MODULUS_LOW)) return (false, "");

        (uint256 squareHigh, uint256 squareLow) = power(high, low, hex"03");
        unchecked {
            squareLow += 4;
            if (squareLow < 4) squareHigh++;
        }
        if (!less(squareHigh, squareLow, MODULUS_HIGH, MODULUS_LOW)) {
            (squareHigh, squareLow) = subtract(squareHigh, squareLow, MODULUS_HIGH, MODULUS_LOW);
        }
        (uint256 rootHigh, uint256 rootLow) = power(squareHigh, squareLow, ROOT_EXPONENT);
        (uint256 backHigh, uint256 backLow) = power(rootHigh, rootLow, hex"02");
        if (backHigh != squareHigh || backLow != squareLow) return (false, "");
        // There is no point with y = 0: the curve's order is odd.
        if (less(HALF_HIGH, HALF_LOW, rootHigh, rootLow) != (flags & 1 == 1)) {
            (rootHigh, rootLow) = subtract(MODULUS_HIGH, MODULUS_LOW, rootHigh, rootLow);
        }
        return (true, abi.encode(high, low, rootHigh, rootLow));
    }

    /// @notice Whether a point of the curve lies in the subgroup: [z⁴]P + P = [z²]P.
    function inSubgroup(bytes memory point) internal view returns (bool) {
        bytes memory square = timesParameter(timesParameter(point));
        bytes memory fourth = timesParameter(timesParameter(square));
        return keccak256(add(fourth, point)) == keccak256(square);
    }

    /// @dev [|z|]P by doubling and adding.
    function timesParameter(bytes memory point) private view returns (bytes memory product) {
        product = new bytes(Bls12381.G1_BYTES);
        bool done = true;
        assembly ("memory-safe") {
            // Two points side by side, above the free memory: the sum so far, and what is added to it.
            let buffer := mload(0x40)
            mcopy(buffer, add(point, 0x20), 0x80)
            for { let bit := 62 } 1 { bit := sub(bit, 1) } {
                mcopy(add(buffer, 0x80), buffer, 0x80)
                // 0x0b is G1ADD; it doubles, too.
                done := and(done, staticcall(gas(), 0x0b, buffer, 0x100, buffer, 0x80))
                if and(shr(bit, PARAMETER), 1) {
                    mcopy(add(buffer, 0x80), add(point, 0x20), 0x80)
                    done := and(done, staticcall(gas(), 0x0b, buffer, 0x100, buffer, 0x80))
                }
                if iszero(bit) { break }
            }
            mcopy(add(product, 0x20), buffer, 0x80)
        }
        // All points are on the curve, so only gas can be wanting.
        if (!done) revert NotComparable();
    }

    function add(bytes memory one, bytes memory other) private view returns (bytes memory) {
        (bool done, bytes memory sum) = address(0x0b).staticcall(abi.encodePacked(one, other));
        if (!done || sum.length != Bls12381.G1_BYTES) revert NotComparable();
        return sum;
    }

    /// @dev The power of a number below 2^384 modulo p.
    function power(uint256 high, uint256 low, bytes memory exponent) private view returns (uint256, uint256) {
        (bool done, bytes memory result) = MODEXP.staticcall(
            abi.encodePacked(BYTES, exponent.length, BYTES, uint128(high), low, exponent, MODULUS)
        );
        if (!done || result.length != BYTES) revert NotComparable();
        assembly ("memory-safe") {
            high := shr(128, mload(add(result, 0x20)))
            low := mload(add(result, 0x30))
        }
        return (high, low);
    }

    function less(uint256 high, uint256 low, uint256 otherHigh, uint256 otherLow)
        private
        pure
        returns (bool)
    {
        return high < otherHigh || (high == otherHigh && low < otherLow);
    }

    function subtract(uint256 high, uint256 low, uint256 otherHigh, uint256 otherLow)
        private
        pure
        returns (uint256, uint256)
    {
        unchecked {
            return (high - otherHigh - (low < otherLow ? 1 : 0), low - otherLow);
        }
    }
}
