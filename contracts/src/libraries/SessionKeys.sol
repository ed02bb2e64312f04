// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title What follows from a session key: message, randomness, header and mask of a ciphertext
/// @notice
/// ```
/// M = E ⊕ S,  S = SHA256(STREAM ‖ K ‖ ad[0..16] ‖ be32(0)) ‖ SHA256(STREAM ‖ K ‖ ad[0..16] ‖ be32(1)) ‖ …
/// k = SHA256(FO ‖ 00 ‖ K ‖ ad ‖ SHA256(M)) ‖ SHA256(FO ‖ 01 ‖ K ‖ ad ‖ SHA256(M)) mod r
/// C = [k]₁         D = K ⊕ SHA256(KEM ‖ ek^k)[0..16]
/// ```
/// @dev Every call of a precompile is tested for success and for the length of its answer: whatever goes wrong there,
/// running out of gas included, reverts, and no answer is made up from what the memory held before.
library SessionKeys {
    /// @dev The order r of the groups.
    uint256 internal constant ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;
    /// @dev 2^256 mod r.
    uint256 internal constant TWO_256 = 0x1824b159acc5056f998c4fefecbc4ff55884b7fa0003480200000001fffffffe;

    /// @dev (p − 1) / 2 of the field's modulus p: upper and lower 32 bytes.
    uint256 internal constant HALF_MODULUS_HIGH = 0x0d0088f51cbff34d258dd3db21a5d66b;
    uint256 internal constant HALF_MODULUS_LOW =
        0xb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555;

    /// @dev The generator of G1 as EIP-2537 takes it, in words.
    uint256 private constant G1_X_HIGH = 0x17f1d3a73197d7942695638c4fa9ac0f;
    uint256 private constant G1_X_LOW = 0xc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb;
    uint256 private constant G1_Y_HIGH = 0x08b3f481e3aaa0f1a09e30ed741d8ae4;
    uint256 private constant G1_Y_LOW = 0xfcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1;

    /// @dev `BLINDFOLD-V1-STREAM`, `-FO` and `-KEM`.
    bytes19 private constant STREAM = "BLINDFOLD-V1-STREAM";
    bytes15 private constant FO = "BLINDFOLD-V1-FO";
    bytes16 private constant KEM = "BLINDFOLD-V1-KEM";

    uint256 private constant SHA256 = 0x02;
    uint256 private constant G1MSM = 0x0c;

    /// @notice A precompile did not answer as its specification says: too little gas, or a chain without it.
    error PrecompileFailed(uint256 precompile);

    /// @notice The message that `key` opens in `e` under `ad`.
    /// @dev About 330 gas for 32 bytes.
    function open(bytes32 ad, bytes calldata e, bytes16 key) internal view returns (bytes memory message) {
        message = new bytes(e.length);
        bytes memory input = abi.encodePacked(STREAM, key, bytes16(ad), uint32(0));
        bool failed;
        assembly ("memory-safe") {
            let from := add(input, 32)
            let counted := add(from, 23) // the word of the input that ends with the counter
            let word := mload(counted)
            let to := add(message, 32)
            for { let i := 0 } lt(i, e.length) { i := add(i, 32) } {
                mstore(counted, word)
                word := add(word, 1)
                failed := or(
                    failed,
                    iszero(and(eq(returndatasize(), 32), staticcall(gas(), SHA256, from, 55, 0, 32)))
                )
                mstore(add(to, i), xor(mload(0), calldataload(add(e.offset, i))))
            }
            // What was written behind the end is cut off again.
            mstore(add(to, e.length), 0)
        }
        if (failed) revert PrecompileFailed(SHA256);
    }

    /// @notice The randomness k < r that follows from key and message.
    function randomness(bytes32 ad, bytes16 key, bytes memory message) internal view returns (uint256 k) {
        bytes32 hash = digest(message);
        uint256 high = uint256(digest(abi.encodePacked(FO, uint8(0), key, ad, hash)));
        uint256 low = uint256(digest(abi.encodePacked(FO, uint8(1), key, ad, hash)));
        k = addmod(mulmod(high, TWO_256, ORDER), low, ORDER);
    }

    /// @notice The 48 compressed bytes of `[k]₁`, as two words: the first 16 bytes, the last 32.
    /// @dev The identity (k = 0) gives its own encoding, `c0 00 …`. 12,000 gas for the multiplication.
    function header(uint256 k) internal view returns (uint256 high, uint256 low) {
        bool failed;
        uint256 yHigh;
        uint256 yLow;
        assembly ("memory-safe") {
            let point := mload(0x40)
            mstore(point, G1_X_HIGH)
            mstore(add(point, 32), G1_X_LOW)
            mstore(add(point, 64), G1_Y_HIGH)
            mstore(add(point, 96), G1_Y_LOW)
            mstore(add(point, 128), k)
            failed := iszero(and(eq(returndatasize(), 128), staticcall(gas(), G1MSM, point, 160, point, 128)))
            high := mload(point)
            low := mload(add(point, 32))
            yHigh := mload(add(point, 64))
            yLow := mload(add(point, 96))
        }
        if (failed) revert PrecompileFailed(G1MSM);
        if (high == 0 && low == 0 && yHigh == 0 && yLow == 0) return (uint256(0xc0) << 120, 0);
        bool larger = yHigh > HALF_MODULUS_HIGH || (yHigh == HALF_MODULUS_HIGH && yLow > HALF_MODULUS_LOW);
        high |= uint256(larger ? 0xa0 : 0x80) << 120;
    }

    /// @notice The mask of the session key: SHA256(KEM ‖ z)[0..16] with z = ek^k in 576 bytes.
    function mask(bytes memory z) internal view returns (bytes16) {
        return bytes16(digest(abi.encodePacked(KEM, z)));
    }

    /// @notice SHA-256.
    function digest(bytes memory data) internal view returns (bytes32 result) {
        bool failed;
        assembly ("memory-safe") {
            failed := iszero(
                and(eq(returndatasize(), 32), staticcall(gas(), SHA256, add(data, 32), mload(data), 0, 32))
            )
            result := mload(0)
        }
        if (failed) revert PrecompileFailed(SHA256);
    }
}
