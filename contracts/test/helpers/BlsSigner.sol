// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Bls12381 } from "../../src/libraries/Bls12381.sol";

/// @notice BLS keys and signatures made with the precompiles, for tests.
library BlsSigner {
    /// @dev Order of the groups.
    uint256 internal constant ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;

    /// @dev g1.
    bytes internal constant G1_GENERATOR = hex"0000000000000000000000000000000017f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
        hex"0000000000000000000000000000000008b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1";

    /// @dev g2.
    bytes internal constant G2_GENERATOR = hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
        hex"0000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
        hex"000000000000000000000000000000000ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801"
        hex"000000000000000000000000000000000606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be";

    /// @notice The key of the secret `secret`.
    function key(uint256 secret) internal view returns (bytes memory) {
        return mul(address(0x0e), G2_GENERATOR, secret);
    }

    /// @notice [k]₁, 128 bytes.
    function g1(uint256 k) internal view returns (bytes memory) {
        return mul(address(0x0c), G1_GENERATOR, k);
    }

    /// @notice [k]₁, compressed.
    function compressedG1(uint256 k) internal view returns (bytes memory out) {
        bytes memory point = g1(k);
        out = slice(point, 16, 48);
        bool larger = greater(slice(point, 80, 48), slice(g1(ORDER - k), 80, 48));
        out[0] = bytes1(uint8(out[0]) | (larger ? 0xa0 : 0x80));
    }

    /// @notice A point of the twist outside G2: x = 2, and r times it is not the identity.
    function outsideG2() internal pure returns (bytes memory) {
        return bytes.concat(
            bytes32(0),
            bytes32(uint256(2)),
            bytes32(0),
            bytes32(0),
            hex"0000000000000000000000000000000018c6b864ae17dc9da64203ffefb966306425a7bc6aeb7c75247438372716284a4173830420cd476ba1a365b95bfcec38",
            hex"00000000000000000000000000000000172e93db764a8400a7d5071b6b6f5de0da2f0f4a063119abca014006b7c40a2cfe291a1924e65db0d6d0fcfbf3bf3d5c"
        );
    }

    /// @notice The signature over `message` with the tag.
    function sign(uint256 secret, bytes memory tag, bytes memory message)
        internal
        view
        returns (bytes memory)
    {
        return mul(address(0x0c), Bls12381.hashToCurve(tag, message), secret);
    }

    /// @notice The proof of possession of `secret`, over the compressed key that the contracts compute.
    function possession(uint256 secret) internal view returns (bytes memory) {
        return sign(secret, Bls12381.POSSESSION_TAG, compressed(key(secret)));
    }

    /// @notice The compressed key, written down a second time: y against −y instead of against (p − 1) / 2.
    function compressed(bytes memory key_) internal view returns (bytes memory out) {
        bytes memory negated = mul(address(0x0e), key_, ORDER - 1);
        bytes memory c0 = slice(key_, 16, 48);
        bytes memory c1 = slice(key_, 80, 48);
        bool larger = greater(slice(key_, 208, 48), slice(negated, 208, 48))
            || (keccak256(slice(key_, 208, 48)) == keccak256(slice(negated, 208, 48))
                && greater(slice(key_, 144, 48), slice(negated, 144, 48)));
        out = bytes.concat(c1, c0);
        out[0] = bytes1(uint8(out[0]) | (larger ? 0xa0 : 0x80));
    }

    function slice(bytes memory from, uint256 start, uint256 length)
        internal
        pure
        returns (bytes memory out)
    {
        out = new bytes(length);
        for (uint256 i = 0; i < length; i++) {
            out[i] = from[start + i];
        }
    }

    function greater(bytes memory left, bytes memory right) private pure returns (bool) {
        for (uint256 i = 0; i < left.length; i++) {
            if (left[i] != right[i]) return left[i] > right[i];
        }
        return false;
    }

    function mul(address precompile, bytes memory point, uint256 scalar) private view returns (bytes memory) {
        (bool done, bytes memory product) = precompile.staticcall(abi.encodePacked(point, scalar));
        require(done && product.length == point.length, "scalar multiplication failed");
        return product;
    }
}
