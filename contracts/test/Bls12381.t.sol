// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Bls12381 } from "../src/libraries/Bls12381.sol";
import { BlsSigner } from "./helpers/BlsSigner.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Calldata doors to the library.
contract Bls12381Caller {
    function compress(bytes calldata key) external pure returns (bytes memory) {
        return Bls12381.compress(key);
    }

    function pack(bytes calldata key) external pure returns (bytes memory) {
        return Bls12381.pack(key);
    }

    function verify(bytes calldata key, bytes calldata message, bytes calldata signature)
        external
        view
        returns (bool)
    {
        return Bls12381.verify(key, Bls12381.SIGNATURE_TAG, message, signature);
    }

    function sum(bytes calldata packed, uint256 chosen) external view returns (bytes memory) {
        return Bls12381.sum(packed, chosen);
    }

    /// @dev Memory that nobody has taken need not be zero.
    function sumInUsedMemory(bytes memory packed, uint256 chosen) external view returns (bytes memory) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            for { let at := 0 } lt(at, 0x800) { at := add(at, 0x20) } {
                mstore(add(free, at), not(0))
            }
        }
        return Bls12381.sum(packed, chosen);
    }

    function unpack(bytes calldata packed, uint256 index) external pure returns (bytes memory) {
        return Bls12381.unpack(packed, index);
    }

    function requireInG2(bytes calldata point) external view {
        Bls12381.requireInG2(point);
    }
}

contract Bls12381Test is Test {
    /// RFC 9380, appendix J.9.1.
    bytes internal constant RFC_TAG = "QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";

    Bls12381Caller internal caller = new Bls12381Caller();

    function testHashToCurveOfEmptyMessage() public view {
        checkEqual(
            Bls12381.hashToCurve(RFC_TAG, ""),
            hex"00000000000000000000000000000000052926add2207b76ca4fa57a8734416c8dc95e24501772c814278700eed6d1e4e8cf62d9c09db0fac349612b759e79a1"
            hex"0000000000000000000000000000000008ba738453bfed09cb546dbb0783dbb3a5f1f566ed67bb6be0e8c67e2e81a4cc68ee29813bb7994998f3eae0c9c6a265",
            "H()"
        );
    }

    function testHashToCurveOfAbc() public view {
        checkEqual(
            Bls12381.hashToCurve(RFC_TAG, "abc"),
            hex"0000000000000000000000000000000003567bc5ef9c690c2ab2ecdf6a96ef1c139cc0b2f284dca0a9a7943388a49a3aee664ba5379a7655d3c68900be2f6903"
            hex"000000000000000000000000000000000b9c15f3fe6e5cf4211f346271d7b01c8f3b28be689c8429c85b67af215533311f0b8dfaaa154fa6b88176c229f2885d",
            "H(abc)"
        );
    }

    function testCompressGenerator() public view {
        checkEqual(
            caller.compress(BlsSigner.G2_GENERATOR),
            hex"93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8",
            "g2"
        );
        checkEqual(uint8(caller.compress(Bls12381.NEGATED_GENERATOR)[0]), 0xb3, "flags of -g2");
    }

    function testCompressLooksAtC0WhenC1IsZero() public view {
        bytes memory key = new bytes(256);
        key[16] = 0x0d; // x.c0
        key[191] = 0x01; // y.c0 = 1
        checkEqual(uint8(caller.compress(key)[0]), 0x80, "smaller y.c0");
        key[144] = 0x19; // y.c0 above (p - 1) / 2
        checkEqual(uint8(caller.compress(key)[0]), 0xa0, "larger y.c0");
        key[255] = 0x01; // y.c1 = 1 decides
        checkEqual(uint8(caller.compress(key)[0]), 0x80, "smaller y.c1");
        (key[255], key[223]) = (0x00, 0x01); // one with a lower half of zeros
        checkEqual(uint8(caller.compress(key)[0]), 0x80, "smaller y.c1, upper half");
    }

    /// @dev The larger y begins at (p + 1) / 2. Either half of it decides.
    function testCompressAtHalfTheModulus() public view {
        bytes memory half =
            hex"0d0088f51cbff34d258dd3db21a5d66bb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555";
        for (uint256 offset = 144; offset <= 208; offset += 64) {
            bytes memory key = new bytes(256);
            for (uint256 i = 0; i < 48; i++) {
                key[offset + i] = half[i];
            }
            checkEqual(uint8(caller.compress(key)[0]), 0x80, "(p - 1) / 2");
            key[offset + 47] = 0x54;
            checkEqual(uint8(caller.compress(key)[0]), 0x80, "(p - 3) / 2");
            key[offset + 47] = 0x56;
            checkEqual(uint8(caller.compress(key)[0]), 0xa0, "(p + 1) / 2");
            key[offset + 15] = 0x6a;
            checkEqual(uint8(caller.compress(key)[0]), 0x80, "a smaller upper half");
        }
    }

    function testUnpackTakesWholePointsOfTheList() public {
        bytes memory packed =
            bytes.concat(caller.pack(BlsSigner.key(7)), caller.pack(BlsSigner.key(8)), new bytes(191));
        checkEqual(caller.unpack(packed, 0), BlsSigner.key(7), "first");
        checkEqual(caller.unpack(packed, 1), BlsSigner.key(8), "second");
        for (uint256 index = 2; index < 4; index++) {
            vm.expectRevert(abi.encodeWithSignature("Panic(uint256)", 0x01));
            caller.unpack(packed, index);
        }
    }

    function testPointsOfG2() public {
        caller.requireInG2(BlsSigner.key(5));
        caller.requireInG2(new bytes(256));
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.requireInG2(BlsSigner.outsideG2());
        bytes memory key = BlsSigner.key(5);
        key[255] ^= 0x01;
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.requireInG2(key);
    }

    function testFuzzCompress(uint256 secret) public view {
        bytes memory key = BlsSigner.key(bound(secret, 1, BlsSigner.ORDER - 1));
        checkEqual(caller.compress(key), BlsSigner.compressed(key), "compressed");
        checkEqual(Bls12381.unpack(caller.pack(key), 0), key, "unpack(pack(key))");
    }

    function testFuzzVerify(uint256 secret, bytes memory message, bytes memory other) public view {
        secret = bound(secret, 1, BlsSigner.ORDER - 2);
        bytes memory signature = BlsSigner.sign(secret, Bls12381.SIGNATURE_TAG, message);
        check(caller.verify(BlsSigner.key(secret), message, signature), "own signature");
        check(!caller.verify(BlsSigner.key(secret + 1), message, signature), "another's key");
        bytes memory changed = bytes.concat(message, hex"00", other);
        check(!caller.verify(BlsSigner.key(secret), changed, signature), "another message");
        bytes memory possession = BlsSigner.sign(secret, Bls12381.POSSESSION_TAG, message);
        check(!caller.verify(BlsSigner.key(secret), message, possession), "another tag");
    }

    function testIdentityNeverVerifies() public view {
        bytes memory signature = BlsSigner.sign(5, Bls12381.SIGNATURE_TAG, "m");
        check(!caller.verify(new bytes(256), "m", signature), "identity key");
        check(!caller.verify(BlsSigner.key(5), "m", new bytes(128)), "identity signature");
        check(!caller.verify(new bytes(256), "m", new bytes(128)), "both");
    }

    function testTheIdentityIsZeroWhateverIsBehindIt() public pure {
        bytes memory point = new bytes(128);
        bytes memory behind = hex"01";
        check(Bls12381.isZero(point) && behind.length == 1, "the identity");
        point[127] = 0x01;
        check(!Bls12381.isZero(point), "the last byte");
        (point[127], point[0]) = (0x00, 0x01);
        check(!Bls12381.isZero(point), "the first byte");
    }

    function testWrongLengths() public {
        bytes memory key = BlsSigner.key(5);
        bytes memory signature = BlsSigner.sign(5, Bls12381.SIGNATURE_TAG, "m");
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.verify(bytes.concat(key, hex"00"), "m", signature);
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.verify(key, "m", BlsSigner.slice(signature, 0, 127));
    }

    /// @dev The pairing takes any number of pairs: one with the identity, put between ours, changes nothing for it.
    function testNoFurtherPairsAreSmuggledIn() public {
        bytes memory key = BlsSigner.key(5);
        bytes memory signature = BlsSigner.sign(5, Bls12381.SIGNATURE_TAG, "m");
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.verify(bytes.concat(key, new bytes(384)), "m", signature);
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.verify(key, "m", bytes.concat(signature, Bls12381.NEGATED_GENERATOR, new bytes(128)));
    }

    function testPointOffTheCurve() public {
        bytes memory signature = BlsSigner.sign(5, Bls12381.SIGNATURE_TAG, "m");
        signature[127] ^= 0x01;
        bytes memory key = BlsSigner.key(5);
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.verify(key, "m", signature);
    }

    function testPointOutsideTheSubgroup() public {
        // (0, 2) lies on y² = x³ + 4 and has order 3.
        bytes memory point = new bytes(128);
        point[127] = 0x02;
        bytes memory key = BlsSigner.key(5);
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.verify(key, "m", point);
    }

    function testCoordinateNotCanonical() public {
        bytes memory key = BlsSigner.key(5);
        key[0] = 0x01; // a padding byte
        bytes memory signature = BlsSigner.sign(5, Bls12381.SIGNATURE_TAG, "m");
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.verify(key, "m", signature);
    }

    function testFuzzSum(uint256 seed, uint8 chosen) public view {
        bytes memory packed;
        uint256 secretSum = 0;
        for (uint256 i = 0; i < 8; i++) {
            uint256 secret = bound(uint256(keccak256(abi.encode(seed, i))), 1, BlsSigner.ORDER - 1);
            packed = bytes.concat(packed, caller.pack(BlsSigner.key(secret)));
            if ((chosen >> i) & 1 == 1) secretSum = addmod(secretSum, secret, BlsSigner.ORDER);
        }
        checkEqual(caller.sum(packed, chosen), BlsSigner.key(secretSum), "sum of keys");
    }

    function testSumOfEqualPointsAndOfOpposites() public view {
        bytes memory packed = bytes.concat(
            caller.pack(BlsSigner.key(7)),
            caller.pack(BlsSigner.key(7)),
            caller.pack(BlsSigner.key(BlsSigner.ORDER - 14))
        );
        checkEqual(caller.sum(packed, 3), BlsSigner.key(14), "7 + 7");
        check(Bls12381.isZero(caller.sum(packed, 7)), "7 + 7 - 14");
        check(Bls12381.isZero(caller.sum(packed, 0)), "nobody");
        check(Bls12381.isZero(caller.sum(packed, type(uint256).max)), "bits of nobody");
    }

    function testSumInUsedMemory() public view {
        bytes memory packed = bytes.concat(caller.pack(BlsSigner.key(7)), caller.pack(BlsSigner.key(8)));
        checkEqual(caller.sumInUsedMemory(packed, 3), BlsSigner.key(15), "7 + 8");
    }

    function testSumOfInvalidPoint() public {
        bytes memory packed = new bytes(192);
        packed[191] = 0x01;
        vm.expectRevert(abi.encodePacked(Bls12381.InvalidPoint.selector));
        caller.sum(packed, 1);
    }
}
