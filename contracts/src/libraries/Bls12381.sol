// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title BLS signatures on BLS12-381 by the precompiles of EIP-2537
/// @notice Signatures in G1 (128 bytes, uncompressed), keys in G2 (256 bytes, uncompressed), proof-of-possession
/// scheme of draft-irtf-cfrg-bls-signature with the hash to curve of RFC 9380 (`BLS12381G1_XMD:SHA-256_SSWU_RO_`).
///
/// Where points are checked: PAIRING refuses coordinates that are not canonical, points off the curve and points
/// outside the subgroup; G1ADD and G2ADD check the curve but **not the subgroup**. So every point from outside goes
/// through a pairing before it is added to anything or stored. The output of MAP_FP_TO_G1 is in the subgroup.
/// The identity passes all of those checks; it is refused here by name.
/// @dev A precompile that refuses its input uses up the gas it is given, that is 63/64 of what is left.
library Bls12381 {
    /// @dev Length of a G1 point.
    uint256 internal constant G1_BYTES = 128;
    /// @dev Length of a G2 point.
    uint256 internal constant G2_BYTES = 256;
    /// @dev Length of a G2 point without the 16 zero bytes in front of each coordinate, as it is stored.
    uint256 internal constant PACKED_G2_BYTES = 192;

    /// @dev Domain tag of signatures over messages.
    bytes internal constant SIGNATURE_TAG = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
    /// @dev Domain tag of proofs of possession, whose message is the compressed key.
    bytes internal constant POSSESSION_TAG = "BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";

    address private constant G1ADD = address(0x0b);
    address private constant PAIRING = address(0x0f);
    address private constant MAP_FP_TO_G1 = address(0x10);
    address private constant MODEXP = address(0x05);

    /// @dev The field's modulus p in 64 bytes.
    bytes private constant MODULUS =
        hex"000000000000000000000000000000001a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";

    /// @dev (p − 1) / 2: upper and lower 32 bytes.
    uint256 private constant HALF_MODULUS_HIGH = 0x0d0088f51cbff34d258dd3db21a5d66b;
    uint256 private constant HALF_MODULUS_LOW =
        0xb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555;

    /// @dev −g2, the negated generator of G2: x.c0, x.c1, y.c0, y.c1.
    bytes internal constant NEGATED_GENERATOR = hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
        hex"0000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
        hex"000000000000000000000000000000000d1b3cc2c7027888be51d9ef691d77bcb679afda66c73f17f9ee3837a55024f78c71363275a75d75d86bab79f74782aa"
        hex"0000000000000000000000000000000013fa4d4a0ad8b1ce186ed5061789213d993923066dddaf1040bc3ff59f825c78df74f2d75467e25e0f55f8a00fa030ed";

    /// @notice A precompile refused its input: a coordinate is not canonical, or a point is off the curve or outside
    /// the subgroup.
    error InvalidPoint();

    /// @notice Whether `signature` over `message` under the tag verifies for `key`:
    /// `e(H(message), key) · e(signature, −g2) = 1`.
    /// @dev Reverts with `InvalidPoint` when a point is not valid. False for an identity point.
    /// Cost: about 120,000 gas, 102,900 of it the pairing.
    function verify(bytes memory key, bytes memory tag, bytes memory message, bytes memory signature)
        internal
        view
        returns (bool)
    {
        if (key.length != G2_BYTES || signature.length != G1_BYTES) revert InvalidPoint();
        if (isZero(key) || isZero(signature)) return false;
        bytes memory result = call(
            PAIRING, abi.encodePacked(hashToCurve(tag, message), key, signature, NEGATED_GENERATOR), 32
        );
        return bytes32(result) == bytes32(uint256(1));
    }

    /// @notice Reverts with `InvalidPoint` unless the 256 bytes encode a point of G2; the identity is one.
    /// @dev The pairing with the identity of G1 checks the subgroup and costs 70,300 gas.
    function requireInG2(bytes memory point) internal view {
        call(PAIRING, abi.encodePacked(new bytes(G1_BYTES), point), 32);
    }

    /// @notice `hash_to_curve` of RFC 9380 into G1, uncompressed.
    function hashToCurve(bytes memory tag, bytes memory message) internal view returns (bytes memory) {
        bytes memory suffix = abi.encodePacked(tag, uint8(tag.length));
        // expand_message_xmd to 128 bytes; SHA-256 takes blocks of 64.
        bytes32 b0 = sha256(abi.encodePacked(bytes32(0), bytes32(0), message, uint16(128), uint8(0), suffix));
        bytes32 b1 = sha256(abi.encodePacked(b0, uint8(1), suffix));
        bytes32 b2 = sha256(abi.encodePacked(b0 ^ b1, uint8(2), suffix));
        bytes32 b3 = sha256(abi.encodePacked(b0 ^ b2, uint8(3), suffix));
        bytes32 b4 = sha256(abi.encodePacked(b0 ^ b3, uint8(4), suffix));
        bytes memory left = call(MAP_FP_TO_G1, reduce(b1, b2), G1_BYTES);
        bytes memory right = call(MAP_FP_TO_G1, reduce(b3, b4), G1_BYTES);
        return call(G1ADD, abi.encodePacked(left, right), G1_BYTES);
    }

    /// @notice The 96-byte compressed form of a G2 point, the message of its proof of possession: `x.c1 ‖ x.c0` with
    /// the compression flag and the flag of the larger y. The caller checks the point and refuses the identity.
    function compress(bytes calldata key) internal pure returns (bytes memory compressed) {
        compressed = abi.encodePacked(key[80:128], key[16:64]);
        uint256 high = uint256(bytes32(key[192:224]));
        uint256 low = uint256(bytes32(key[224:256]));
        if (high == 0 && low == 0) {
            high = uint256(bytes32(key[128:160]));
            low = uint256(bytes32(key[160:192]));
        }
        bool larger = high > HALF_MODULUS_HIGH || (high == HALF_MODULUS_HIGH && low > HALF_MODULUS_LOW);
        compressed[0] |= bytes1(larger ? 0xa0 : 0x80);
    }

    /// @notice The point without the zero bytes in front of its coordinates.
    function pack(bytes calldata key) internal pure returns (bytes memory) {
        return abi.encodePacked(key[16:64], key[80:128], key[144:192], key[208:256]);
    }

    /// @notice Point `index` of a list of packed ones, in 256 bytes.
    function unpack(bytes memory packed, uint256 index) internal pure returns (bytes memory key) {
        key = new bytes(G2_BYTES);
        unpackTo(packed, index, dataOffset(key));
    }

    /// @notice The sum of the points of `packed` whose bits are set in `chosen`; the identity when there is none.
    /// @dev 600 gas for each addition, and little more: one buffer serves them all. The points are checked ones
    /// (see above) and their sum is checked again by the pairing that uses it.
    function sum(bytes memory packed, uint256 chosen) internal view returns (bytes memory total) {
        total = new bytes(G2_BYTES);
        bytes memory buffer = new bytes(2 * G2_BYTES); // accumulator ‖ next point
        uint256 start = dataOffset(buffer);
        uint256 count = packed.length / PACKED_G2_BYTES;
        for (uint256 i = 0; i < count; i++) {
            if ((chosen >> i) & 1 == 0) continue;
            unpackTo(packed, i, start + G2_BYTES);
            bool done;
            assembly ("memory-safe") {
                // 0x0d is G2ADD.
                done := staticcall(gas(), 0x0d, start, 0x200, start, 0x100)
                done := and(done, eq(returndatasize(), 0x100))
            }
            if (!done) revert InvalidPoint();
        }
        assembly ("memory-safe") {
            mcopy(add(total, 0x20), start, 0x100)
        }
    }

    /// @notice Whether all bytes are zero: the encoding of the identity. The length is a multiple of 32.
    function isZero(bytes memory point) internal pure returns (bool) {
        uint256 start = dataOffset(point);
        uint256 bits = 0;
        for (uint256 word = start; word < start + point.length; word += 32) {
            assembly ("memory-safe") {
                bits := or(bits, mload(word))
            }
        }
        return bits == 0;
    }

    /// @dev The 512-bit number `high ‖ low` modulo p, in 64 bytes: MODEXP with exponent 1.
    function reduce(bytes32 high, bytes32 low) private view returns (bytes memory) {
        return call(
            MODEXP, abi.encodePacked(uint256(64), uint256(1), uint256(64), high, low, uint8(1), MODULUS), 64
        );
    }

    /// @dev Writes point `index` of `packed` in 256 bytes to `to`, whose padding bytes are zero already.
    function unpackTo(bytes memory packed, uint256 index, uint256 to) private pure {
        uint256 from = dataOffset(packed) + index * PACKED_G2_BYTES;
        assert((index + 1) * PACKED_G2_BYTES <= packed.length);
        assembly ("memory-safe") {
            mcopy(add(to, 0x10), from, 0x30)
            mcopy(add(to, 0x50), add(from, 0x30), 0x30)
            mcopy(add(to, 0x90), add(from, 0x60), 0x30)
            mcopy(add(to, 0xd0), add(from, 0x90), 0x30)
        }
    }

    /// @dev Where the bytes of `value` begin in memory.
    function dataOffset(bytes memory value) private pure returns (uint256 start) {
        assembly ("memory-safe") {
            start := add(value, 0x20)
        }
    }

    /// @dev Calls a precompile that must answer with `length` bytes.
    function call(address precompile, bytes memory input, uint256 length)
        private
        view
        returns (bytes memory)
    {
        (bool success, bytes memory output) = precompile.staticcall(input);
        if (!success || output.length != length) revert InvalidPoint();
        return output;
    }
}
