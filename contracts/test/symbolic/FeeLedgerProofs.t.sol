// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FeeLedger } from "../../src/libraries/FeeLedger.sol";
import { Symbolic } from "./Symbolic.sol";

/// @dev The library takes calldata.
contract LedgerDoor {
    function rootFromProof(bytes32 key, bytes32 leaf, bytes32[] calldata siblings)
        external
        pure
        returns (bytes32)
    {
        return FeeLedger.rootFromProof(key, leaf, siblings);
    }
}

/// @dev Accounts under one root, by paths of up to three siblings; hashes are taken to collide nowhere. Of the keys,
/// which are hashes, the first three bits are tried one by one, for they say where a node is written.
contract FeeLedgerProofs is Symbolic {
    struct Account {
        uint128 balance;
        uint128 withdrawn;
        bytes32[3] siblings;
    }

    LedgerDoor internal door = new LedgerDoor();

    function rootOf(bytes32 key, Account calldata account, uint256 length) internal view returns (bytes32) {
        bytes32[] memory path = new bytes32[](length);
        for (uint256 i = 0; i < length; i++) {
            path[i] = account.siblings[i];
        }
        return door.rootFromProof(key, FeeLedger.accountLeaf(key, account.balance, account.withdrawn), path);
    }

    /// @dev No root proves two amounts of one account, nor one amount by two paths, of equal length or not.
    /// @custom:halmos --loop 130
    function check_OneAmountForAnAccount(
        uint8 choice,
        uint256 rest,
        Account calldata one,
        Account calldata other
    ) public view {
        for (uint256 head = 0; head < 8; head++) {
            for (uint256 lengths = 0; lengths < 16; lengths++) {
                if (choice != head * 16 + lengths) continue;
                bytes32 key = bytes32(head << 253 | rest >> 3);
                checkLengths(key, one, other, lengths / 4, lengths % 4);
            }
        }
    }

    function checkLengths(
        bytes32 key,
        Account calldata one,
        Account calldata other,
        uint256 length,
        uint256 otherLength
    ) internal view {
        if (rootOf(key, one, length) != rootOf(key, other, otherLength)) return;
        assert(length == otherLength);
        assert(one.balance == other.balance && one.withdrawn == other.withdrawn);
        for (uint256 i = 0; i < length; i++) {
            assert(one.siblings[i] == other.siblings[i]);
        }
    }
}
