// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Commit first, show the evidence later
/// @notice Whoever reports a fraud commits to its evidence in one block and shows it in a later one, so that a copier
/// who sees the evidence in the mempool has no commitment to it that is old enough.
/// A commitment is `keccak256(abi.encode(sender, evidence, salt))`; what `evidence` is, each report says. The salt is
/// random: without it others could find out from the commitment which evidence is about to come.
/// @dev A commitment names its sender, so it is harmless when another account sends it: it takes effect for the named
/// one only, and its first block stands, so sending it again cannot put the reveal off.
abstract contract CommitReveal {
    /// @notice The L1 block in which a commitment was made; 0 for none, or when it has been used up.
    mapping(bytes32 commitment => uint256 l1Block) public committedAt;

    /// @notice A commitment was made.
    event Committed(bytes32 indexed commitment, address indexed sender);

    /// @notice There is no such commitment: call `commit` with it, wait for the next block and try again.
    error NotCommitted(bytes32 commitment);
    /// @notice The commitment is of this very block: try again in the next one.
    error CommittedInThisBlock();

    /// @notice Commits to evidence that the named sender will show in a later block. Again is no error and changes
    /// nothing.
    /// @param commitment `keccak256(abi.encode(sender, evidence, salt))`.
    function commit(bytes32 commitment) external {
        if (committedAt[commitment] != 0) return;
        committedAt[commitment] = block.number;
        emit Committed(commitment, msg.sender);
    }

    /// @dev Uses up the caller's commitment to `evidence`, which must be of an earlier block.
    function reveal(bytes32 evidence, bytes32 salt) internal {
        bytes32 commitment = keccak256(abi.encode(msg.sender, evidence, salt));
        uint256 l1Block = committedAt[commitment];
        if (l1Block == 0) revert NotCommitted(commitment);
        if (l1Block >= block.number) revert CommittedInThisBlock();
        delete committedAt[commitment];
    }
}
