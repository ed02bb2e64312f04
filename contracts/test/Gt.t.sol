// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { GtFrobenius } from "../src/libraries/GtFrobenius.sol";
import { GtPower } from "../src/libraries/GtPower.sol";
import { GtProduct } from "../src/libraries/GtProduct.sol";
import { GtSquare } from "../src/libraries/GtSquare.sol";
import { GtResidues } from "../src/libraries/GtResidues.sol";
import { SessionKeys } from "../src/libraries/SessionKeys.sol";
import { SlowField } from "./helpers/SlowField.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Doors to the libraries: they work at fixed places of an empty memory.
contract GtDoor {
    /// @dev Where the operand of a product is.
    uint256 internal constant B = 0xb00;

    function power(bytes calldata z, uint256 k) external pure returns (bytes memory) {
        GtResidues.reserve();
        GtResidues.load(z);
        return GtPower.power(k);
    }

    function multiply(bytes calldata a, bytes calldata b) external pure returns (bytes memory) {
        GtResidues.reserve();
        GtResidues.load(b);
        GtProduct.operand(B);
        GtResidues.load(a);
        GtProduct.multiply();
        return encode();
    }

    /// @dev a·b̄.
    function multiplyConjugate(bytes calldata a, bytes calldata b) external pure returns (bytes memory) {
        GtResidues.reserve();
        GtResidues.load(b);
        GtProduct.operand(B);
        GtProduct.conjugate();
        GtResidues.load(a);
        GtProduct.multiply();
        return encode();
    }

    function square(bytes calldata a) external pure returns (bytes memory) {
        GtResidues.reserve();
        GtResidues.load(a);
        triple();
        GtSquare.square();
        return GtResidues.encodeThird();
    }

    function frobenius(bytes calldata a, uint256 j) external pure returns (bytes memory) {
        GtResidues.reserve();
        GtResidues.load(a);
        GtProduct.operand(B);
        GtFrobenius.constants();
        GtFrobenius.image(j);
        return encode();
    }

    function roundTrip(bytes calldata a) external pure returns (bytes memory) {
        GtResidues.reserve();
        GtResidues.load(a);
        return encode();
    }

    function inUse(bytes calldata a) external pure returns (bytes memory) {
        bytes memory used = new bytes(0x200);
        GtResidues.reserve();
        GtResidues.load(a);
        return used;
    }

    function gasOf(bytes calldata a)
        external
        view
        returns (uint256 reduce, uint256 square_, uint256 product)
    {
        GtResidues.reserve();
        GtResidues.load(a);
        GtProduct.operand(B);
        reduce = gasleft();
        GtResidues.reduce();
        reduce -= gasleft();
        square_ = gasleft();
        GtSquare.square();
        square_ -= gasleft();
        product = gasleft();
        GtProduct.multiply();
        product -= gasleft();
    }

    function triple() internal pure {
        GtProduct.operand(B);
        GtProduct.start();
    }

    function encode() internal pure returns (bytes memory) {
        triple();
        return GtResidues.encodeThird();
    }
}

contract GtTest is Test {
    GtDoor internal door = new GtDoor();
    uint256 internal constant BASE = 0xd201000000010000;
    bytes internal ek;

    function setUp() public {
        ek = vm.parseJsonBytes(vm.readFile("../testing/vectors/b4-full.json"), ".ek");
    }

    /// @dev An element with the coefficients of `mask` drawn, the others zero.
    function drawn(uint256 seed, uint256 mask) internal view returns (bytes memory encoded) {
        for (uint256 i = 0; i < 12; i++) {
            SlowField.Fp memory c;
            if ((mask >> i) & 1 == 1) {
                c = SlowField.modulo(
                    abi.encode(keccak256(abi.encode(seed, i)), keccak256(abi.encode(i, seed)))
                );
            }
            encoded = abi.encodePacked(encoded, uint128(c.high), c.low);
        }
    }

    /// @dev An element with p − 1 or 0 in every coefficient.
    function extreme(uint256 mask) internal pure returns (bytes memory encoded) {
        for (uint256 i = 0; i < 12; i++) {
            bool full = (mask >> i) & 1 == 1;
            encoded = abi.encodePacked(
                encoded, full ? uint128(SlowField.P_HIGH) : 0, full ? SlowField.P_LOW - 1 : 0
            );
        }
    }

    function testFuzzRoundTrip(uint256 seed) public view {
        bytes memory a = drawn(seed, 0xfff);
        checkEqual(door.roundTrip(a), a, "drawn");
        a = extreme(seed);
        checkEqual(door.roundTrip(a), a, "extreme");
    }

    function testFuzzFieldProduct(uint256 seed) public view {
        bytes memory a = drawn(seed, 1);
        bytes memory b = drawn(~seed, 1);
        checkEqual(door.multiply(a, b), SlowField.mul(a, b), "product in F_p");
    }

    function testFuzzTowerProducts(uint256 seed) public view {
        uint16[3] memory masks = [3, 0x3f, 0xfff]; // F_p2, F_p6, F_p12
        for (uint256 i = 0; i < 3; i++) {
            bytes memory a = drawn(seed, masks[i]);
            bytes memory b = drawn(~seed, masks[i]);
            bytes memory ab = door.multiply(a, b);
            checkEqual(ab, SlowField.mul(a, b), "the slow product");
            checkEqual(door.multiply(b, a), ab, "commutative");
            bytes memory c = drawn(seed ^ 1, masks[i]);
            checkEqual(door.multiply(ab, c), door.multiply(a, door.multiply(b, c)), "associative");
        }
    }

    /// @dev The largest and smallest sums of products.
    function testFuzzExtremeProducts(uint256 left, uint256 right) public view {
        bytes memory a = extreme(left);
        bytes memory b = extreme(right);
        checkEqual(door.multiply(a, b), SlowField.mul(a, b), "product");
        checkEqual(door.multiplyConjugate(a, b), SlowField.mul(a, conjugate(b)), "with the conjugate");
    }

    function testExtremeProductsOfEveryPattern() public view {
        for (uint256 pattern = 0; pattern < 64; pattern++) {
            // Real and imaginary parts by turns, in even and odd powers of w.
            uint256 left = (pattern & 1) * 0x15 | ((pattern >> 1) & 1) * 0x2a | ((pattern >> 2) & 1) * 0x540
                | ((pattern >> 3) & 1) * 0xa80;
            for (uint256 side = 0; side < 4; side++) {
                uint256 right = (side & 1) * 0x555 | (side >> 1) * 0xaaa;
                bytes memory a = extreme(left);
                bytes memory b = extreme(pattern & 16 == 0 ? right : right & 0x3f);
                checkEqual(door.multiply(a, b), SlowField.mul(a, b), "product");
            }
        }
    }

    /// @dev The formula holds in the cyclotomic subgroup alone; its sums of products are bounded for all.
    function testFuzzSquare(uint256 k) public view {
        bytes memory z = door.power(ek, k % SessionKeys.ORDER);
        checkEqual(door.square(z), SlowField.mul(z, z), "square");
        checkEqual(door.square(z), door.multiply(z, z), "product");
    }

    function testFuzzExtremeSquare(uint256 pattern) public view {
        bytes memory z = extreme(pattern);
        checkEqual(door.square(z), cyclotomicFormula(z), "Granger-Scott");
    }

    function testFrobenius() public view {
        bytes memory expected = ek;
        for (uint256 j = 1; j < 4; j++) {
            expected = SlowField.power(expected, BASE);
            checkEqual(door.frobenius(ek, j), expected, "psi^j");
        }
    }

    function testFuzzFrobeniusIsAHomomorphism(uint256 seed) public view {
        bytes memory a = drawn(seed, 0xfff);
        bytes memory b = drawn(~seed, 0xfff);
        for (uint256 j = 1; j < 4; j++) {
            checkEqual(
                door.frobenius(door.multiply(a, b), j),
                door.multiply(door.frobenius(a, j), door.frobenius(b, j)),
                "image of a product"
            );
        }
        checkEqual(door.frobenius(door.frobenius(a, 1), 2), door.frobenius(a, 3), "psi^3");
    }

    function testPowersAtTheEdges() public view {
        uint256[12] memory exponents = [
            uint256(0),
            1,
            2,
            31,
            32,
            33,
            BASE - 1,
            BASE,
            BASE + 1,
            BASE ** 3 - 1,
            BASE ** 3,
            SessionKeys.ORDER - 1
        ];
        for (uint256 i = 0; i < exponents.length; i++) {
            checkEqual(door.power(ek, exponents[i]), SlowField.power(ek, exponents[i]), "power");
        }
        checkEqual(door.power(ek, SessionKeys.ORDER), SlowField.encode(SlowField.one()), "order");
    }

    function testSomeRandomPowers() public view {
        for (uint256 i = 0; i < 3; i++) {
            uint256 k = uint256(keccak256(abi.encode(i))) % SessionKeys.ORDER;
            checkEqual(door.power(ek, k), SlowField.power(ek, k), "power");
        }
    }

    function testFuzzPowerLaws(uint256 k, uint256 l) public view {
        k %= SessionKeys.ORDER;
        l %= SessionKeys.ORDER;
        bytes memory z = door.power(ek, k);
        checkEqual(
            door.multiply(z, door.power(ek, l)), door.power(ek, addmod(k, l, SessionKeys.ORDER)), "sum"
        );
        checkEqual(door.power(z, l), door.power(ek, mulmod(k, l, SessionKeys.ORDER)), "product");
    }

    function testPowersOfTheIdentity() public view {
        bytes memory one = SlowField.encode(SlowField.one());
        checkEqual(door.power(one, SessionKeys.ORDER - 1), one, "1^(r-1)");
        checkEqual(door.power(one, 0), one, "1^0");
    }

    function testCoefficientsNotReduced() public {
        for (uint256 i = 0; i < 12; i++) {
            bytes memory wrong = bytes.concat(ek);
            bytes memory p = abi.encodePacked(uint128(SlowField.P_HIGH), SlowField.P_LOW);
            for (uint256 j = 0; j < 48; j++) {
                wrong[48 * i + j] = p[j];
            }
            vm.expectRevert(abi.encodeWithSelector(GtResidues.CoefficientNotReduced.selector, i));
            door.power(wrong, 1);
            wrong[48 * i] = 0xff;
            vm.expectRevert(abi.encodeWithSelector(GtResidues.CoefficientNotReduced.selector, i));
            door.power(wrong, 1);
        }
    }

    function testMemoryInUse() public {
        vm.expectRevert(abi.encodeWithSelector(GtResidues.MemoryInUse.selector));
        door.inUse(ek);
    }

    function testGasOfTheParts() public {
        door.power(ek, uint256(keccak256("k")) % SessionKeys.ORDER);
        vm.snapshotGasLastCall("GtPower.power, random exponent");
        (uint256 reduce, uint256 square, uint256 product) = door.gasOf(ek);
        check(reduce < 3_900 && square < 8_600 && product < 13_500, "dearer than documented");
    }

    function conjugate(bytes memory b) internal pure returns (bytes memory) {
        SlowField.Fp[12] memory z = SlowField.decode(b);
        for (uint256 k = 1; k < 6; k += 2) {
            z[2 * k] = SlowField.negate(z[2 * k]);
            z[2 * k + 1] = SlowField.negate(z[2 * k + 1]);
        }
        return SlowField.encode(z);
    }

    /// @dev The formula of Granger and Scott over the slow field, for any element.
    function cyclotomicFormula(bytes memory a) internal view returns (bytes memory) {
        SlowField.Fp[12] memory z = SlowField.decode(a);
        SlowField.Fp[12] memory out;
        half(z, out, 0, 3, 0, 3, false);
        half(z, out, 1, 4, 2, 5, false);
        half(z, out, 2, 5, 4, 1, true);
        return SlowField.encode(out);
    }

    function half(
        SlowField.Fp[12] memory z,
        SlowField.Fp[12] memory out,
        uint256 a,
        uint256 b,
        uint256 first,
        uint256 second,
        bool twisted
    ) internal view {
        // (a + b·w^3)² for the pair, w^6 = ξ.
        SlowField.Fp[12] memory pair;
        (pair[0], pair[1], pair[6], pair[7]) = (z[2 * a], z[2 * a + 1], z[2 * b], z[2 * b + 1]);
        SlowField.Fp[12] memory s = SlowField.mul12(pair, pair);
        SlowField.Fp[12] memory t;
        (t[0], t[1]) = (s[6], s[7]);
        if (twisted) {
            // times ξ
            (t[0], t[1]) = (SlowField.add(s[6], SlowField.negate(s[7])), SlowField.add(s[6], s[7]));
        }
        for (uint256 i = 0; i < 2; i++) {
            SlowField.Fp memory y = SlowField.negate(z[2 * first + i]);
            out[2 * first + i] =
                SlowField.add(SlowField.add(SlowField.add(s[i], s[i]), s[i]), SlowField.add(y, y));
            y = z[2 * second + i];
            out[2 * second + i] =
                SlowField.add(SlowField.add(SlowField.add(t[i], t[i]), t[i]), SlowField.add(y, y));
        }
    }
}
