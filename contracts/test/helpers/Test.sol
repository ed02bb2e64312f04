// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @notice The cheat codes that these tests use.
interface Vm {
    function addr(uint256 privateKey) external pure returns (address);
    function assume(bool condition) external pure;
    function blobhashes(bytes32[] calldata hashes) external;
    function computeCreateAddress(address deployer, uint256 nonce) external pure returns (address);
    function cool(address target) external;
    function deal(address account, uint256 balance) external;
    function etch(address target, bytes calldata code) external;
    function expectEmit(bool topic1, bool topic2, bool topic3, bool data, address emitter) external;
    function expectEmit(bool topic1, bool topic2, bool topic3, bool data, address emitter, uint64 count)
        external;
    function expectRevert(bytes calldata reason) external;
    function expectPartialRevert(bytes4 selector) external;
    function getNonce(address account) external view returns (uint64);
    function mockCall(address callee, bytes calldata data, bytes calldata returned) external;
    function mockCallRevert(address callee, bytes calldata data, bytes calldata reason) external;
    function parseBytes(string calldata text) external pure returns (bytes memory);
    function parseJsonAddress(string calldata json, string calldata key) external pure returns (address);
    function parseJsonBool(string calldata json, string calldata key) external pure returns (bool);
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function parseJsonBytes32(string calldata json, string calldata key) external pure returns (bytes32);
    function parseJsonBytes32Array(string calldata json, string calldata key)
        external
        pure
        returns (bytes32[] memory);
    function parseJsonString(string calldata json, string calldata key) external pure returns (string memory);
    function parseJsonUint(string calldata json, string calldata key) external pure returns (uint256);
    function load(address target, bytes32 slot) external view returns (bytes32);
    function keyExistsJson(string calldata json, string calldata key) external view returns (bool);
    function prank(address sender) external;
    function startPrank(address sender) external;
    function stopPrank() external;
    function prank(address sender, address origin) external;
    function readFile(string calldata path) external view returns (string memory);
    function revertToState(uint256 snapshot) external returns (bool);
    function roll(uint256 blockNumber) external;
    function fee(uint256 baseFee) external;
    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function snapshotGasLastCall(string calldata name) external returns (uint256);
    function snapshotState() external returns (uint256 snapshot);
    function store(address target, bytes32 slot, bytes32 value) external;
    function toString(uint256 value) external pure returns (string memory);
    function warp(uint256 timestamp) external;
}

/// @notice The little that these tests need of a framework.
abstract contract Test {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// @dev Order of the secp256k1 group.
    uint256 internal constant SECP256K1_ORDER =
        0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;

    /// @dev Read by forge to recognise a test contract.
    bool public constant IS_TEST = true;

    error NotEqual(string what, bytes32 expected, bytes32 given);
    error NotTrue(string what);

    function check(bool condition, string memory what) internal pure {
        if (!condition) revert NotTrue(what);
    }

    function checkEqual(uint256 given, uint256 expected, string memory what) internal pure {
        if (given != expected) revert NotEqual(what, bytes32(expected), bytes32(given));
    }

    function checkEqual(bytes32 given, bytes32 expected, string memory what) internal pure {
        if (given != expected) revert NotEqual(what, expected, given);
    }

    function checkEqual(address given, address expected, string memory what) internal pure {
        checkEqual(uint256(uint160(given)), uint256(uint160(expected)), what);
    }

    function checkEqual(bytes memory given, bytes memory expected, string memory what) internal pure {
        checkEqual(keccak256(given), keccak256(expected), what);
    }

    /// @dev `value` brought into `low ..= high`.
    function bound(uint256 value, uint256 low, uint256 high) internal pure returns (uint256) {
        uint256 size = high - low + 1;
        return size == 0 ? value : low + value % size;
    }
}
