// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title The EIP-712 domain of one deployment
/// @notice Everything that is signed is signed in the domain
/// `name "Blindfold", version "2", chainId = L1 chain id, verifyingContract = BlindedInbox`
/// (docs/protocol.md, "Hashes and signatures"). The pair (chain id, inbox) is the deployment id.
library Domain {
    /// @dev keccak256 of the EIP-712 type of the domain itself.
    bytes32 internal constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    /// @dev Tag in front of the domain in the hash of number 0.
    string internal constant GENESIS_TAG = "BLINDFOLD-V2-GENESIS";

    /// @notice The separator of the deployment `(chainId, inbox)`.
    function separator(uint256 chainId, address inbox) internal pure returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("Blindfold"), keccak256("2"), chainId, inbox));
    }

    /// @notice What is signed for the struct hash `structHash`: `keccak256(0x1901 ‖ separator ‖ structHash)`.
    function digest(bytes32 separator_, bytes32 structHash) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", separator_, structHash));
    }

    /// @notice The hash that stands for number 0: the parent of the first header.
    function genesisHash(bytes32 separator_) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(GENESIS_TAG, separator_));
    }
}
