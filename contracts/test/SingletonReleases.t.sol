// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Bls12381 } from "../src/libraries/Bls12381.sol";
import { SingletonReleases } from "../src/libraries/SingletonReleases.sol";
import { BlsSigner } from "./helpers/BlsSigner.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Calls the library from outside, so that its reverts can be expected.
contract ReleaseCaller {
    function isRight(bytes memory release, bytes memory c, bytes memory h1) external view returns (bool) {
        return SingletonReleases.isRight(release, c, h1);
    }
}

contract SingletonReleasesTest is Test {
    /// @dev τ, of which members hold shares.
    uint256 internal constant TAU = 0x7a0;
    bytes internal constant GENERATOR =
        hex"97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb";
    ReleaseCaller internal caller;
    bytes internal h1;

    function setUp() public {
        caller = new ReleaseCaller();
        h1 = BlsSigner.key(TAU);
    }

    function testGenerator() public view {
        checkEqual(BlsSigner.compressedG1(1), GENERATOR, "as it is written everywhere");
        (bool isPoint, bytes memory decoded) = SingletonReleases.decompress(GENERATOR);
        check(isPoint, "a point");
        checkEqual(decoded, BlsSigner.G1_GENERATOR, "both coordinates");
    }

    /// @dev Rule S-1.
    function testFuzzRightReleaseAndEveryOther(uint256 k, uint256 other) public view {
        k = bound(k, 1, BlsSigner.ORDER - 1);
        other = bound(other, 1, BlsSigner.ORDER - 1);
        bytes memory c = BlsSigner.compressedG1(k);
        uint256 right = mulmod(k, TAU, BlsSigner.ORDER);
        check(caller.isRight(BlsSigner.compressedG1(right), c, h1), "right");
        check(!caller.isRight(BlsSigner.compressedG1(BlsSigner.ORDER - right), c, h1), "the other root");
        check(other == right || !caller.isRight(BlsSigner.compressedG1(other), c, h1), "another point");
    }

    function testFuzzDecompressUndoesCompress(uint256 k) public view {
        k = bound(k, 1, BlsSigner.ORDER - 1);
        (bool isPoint, bytes memory decoded) = SingletonReleases.decompress(BlsSigner.compressedG1(k));
        check(isPoint && SingletonReleases.inSubgroup(decoded), "a point of G1");
        checkEqual(decoded, BlsSigner.g1(k), "point");
    }

    /// @dev Garbage is found to be garbage by a comparison that completes, within the gas that it takes (S-2).
    function testGarbageIsWrongAndNothingFails() public view {
        bytes memory c = BlsSigner.compressedG1(9);
        bytes memory release = BlsSigner.compressedG1(mulmod(9, TAU, BlsSigner.ORDER));
        wrong("", c);
        wrong(bytes.concat(release, hex"00"), c);
        wrong(new bytes(48), c); // not compressed
        wrong(flagged(release, 0x80), c); // the flag of compression taken away
        wrong(flagged(release, 0x40), c); // the flag of the identity put on
        bytes memory identity = new bytes(48);
        identity[0] = 0xc0;
        wrong(identity, c);
        // x = 1 gives no square; x = 0 gives (0, ±2), a point of order 3, and x = 4 one outside the subgroup.
        wrong(ofX(0x80, 1), c);
        wrong(ofX(0x80, 0), c);
        wrong(ofX(0xa0, 0), c);
        wrong(ofX(0x80, 4), c);
        // x = p, p + 4 and the greatest there is: not canonical.
        wrong(
            hex"9a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
            c
        );
        wrong(
            hex"9a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaaf",
            c
        );
        bytes memory greatest = new bytes(48);
        for (uint256 i = 0; i < 48; i++) {
            greatest[i] = 0xff;
        }
        greatest[0] = 0xbf;
        wrong(greatest, c);
    }

    function testFuzzAnyBytesAreJudged(bytes32 left, bytes16 right, bool compression) public view {
        bytes memory release = abi.encodePacked(left, right);
        if (compression) release[0] = bytes1(uint8(release[0]) & 0x3f | 0x80);
        wrong(release, BlsSigner.compressedG1(9));
    }

    /// @dev A point of the curve is the sum of its parts in and outside the subgroup: both signs of z are tried.
    function testSubgroup() public view {
        (bool isPoint, bytes memory small) = SingletonReleases.decompress(ofX(0x80, 0));
        check(isPoint, "(0, 2) is on the curve");
        checkEqual(small, abi.encode(uint256(0), uint256(0), uint256(0), uint256(2)), "as said");
        check(!SingletonReleases.inSubgroup(small), "of order 3");
        (bool done, bytes memory sum) = address(0x0b).staticcall(abi.encodePacked(small, BlsSigner.g1(5)));
        check(done && !SingletonReleases.inSubgroup(sum), "moved by it");
        check(SingletonReleases.inSubgroup(BlsSigner.g1(5)), "and not");
    }

    function testWithoutAPointToCompareWithItReverts() public {
        (bytes memory release, bytes memory c) = (BlsSigner.compressedG1(TAU), BlsSigner.compressedG1(1));
        vm.expectRevert(abi.encodeWithSelector(SingletonReleases.NotComparable.selector));
        caller.isRight(release, ofX(0x80, 1), h1);
        vm.expectRevert(abi.encodeWithSelector(SingletonReleases.NotComparable.selector));
        caller.isRight{ gas: 3_000_000 }(release, ofX(0x80, 4), h1);
        vm.expectRevert(abi.encodeWithSelector(SingletonReleases.NotComparable.selector));
        caller.isRight(release, c, "");
        // As long as both together.
        bytes memory longer = bytes.concat(BlsSigner.g1(1), h1);
        vm.expectRevert(abi.encodeWithSelector(SingletonReleases.NotComparable.selector));
        caller.isRight(release, ofX(0x80, 1), longer);
    }

    /// forge-config: default.isolate = true
    function testGas() public {
        caller.isRight(BlsSigner.compressedG1(mulmod(9, TAU, BlsSigner.ORDER)), BlsSigner.compressedG1(9), h1);
        vm.snapshotGasLastCall("SingletonReleases.isRight");
    }

    function wrong(bytes memory release, bytes memory c) internal view {
        uint256 before = gasleft();
        check(!caller.isRight(release, c, h1), "judged to be right");
        check(before - gasleft() < 1_000_000, "a call failed and took the gas");
    }

    function flagged(bytes memory release, uint8 flag) internal pure returns (bytes memory changed) {
        changed = bytes.concat(release);
        changed[0] ^= bytes1(flag);
    }

    /// @dev The compressed encoding of an x below 256.
    function ofX(uint8 flags, uint8 x) internal pure returns (bytes memory out) {
        out = new bytes(48);
        out[0] = bytes1(flags);
        out[47] = bytes1(x);
    }
}
