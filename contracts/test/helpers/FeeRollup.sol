// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FeeVault } from "../../src/FeeVault.sol";
import { RunReference, Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { BatchHeader } from "../../src/libraries/BatchHeaders.sol";
import { FeeLedger } from "../../src/libraries/FeeLedger.sol";
import { MerkleProofs } from "./MerkleProofs.sol";
import { MerkleTree } from "../../src/libraries/MerkleTree.sol";
import { MockInbox } from "./MockInbox.sol";
import { Test } from "./Test.sol";

/// @notice A ledger of fee accounts, the headers that commit to it, and an inbox and vault to prove them to.
abstract contract FeeRollup is Test {
    address internal constant SEQUENCER = address(0x5e9);
    uint32 internal constant POSTING_DEADLINE = 10;
    uint32 internal constant WITHDRAWAL_DELAY = 20;
    uint64 internal constant START_BLOCK = 1_000;

    struct Account {
        address payer;
        uint128 balance;
        uint128 withdrawn;
        bytes32 noncesHash;
    }

    /// @dev A posted header with all that proves it.
    struct Posted {
        BatchHeader header;
        RunReference run;
        bytes32[] proof;
    }

    MockInbox internal inbox;
    FeeVault internal vault;

    function deployContracts() internal {
        vm.roll(START_BLOCK);
        inbox = new MockInbox(
            SEQUENCER,
            Timing({
                postingDeadline: POSTING_DEADLINE,
                forcedDelay: 3,
                answerWindow: 5,
                hintDeadline: 5,
                challengeWindow: 4,
                withdrawalDelay: WITHDRAWAL_DELAY
            })
        );
        vault = new FeeVault(inbox);
    }

    /// @dev The leaves of a ledger.
    function leavesOf(Account[] memory accounts) internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](accounts.length);
        for (uint256 i = 0; i < accounts.length; i++) {
            Account memory a = accounts[i];
            leaves[i] = FeeLedger.leaf(a.payer, a.balance, a.withdrawn, a.noncesHash);
        }
    }

    function ledgerRoot(Account[] memory accounts) internal pure returns (bytes32) {
        (bytes32 root,) = MerkleProofs.prove(leavesOf(accounts), 0);
        return FeeLedger.commitment(uint64(accounts.length), root);
    }

    /// @dev A header after `number` and `parentHash`.
    function nextHeader(uint64 number, bytes32 parentHash, uint64 origin, bytes32 root)
        internal
        pure
        returns (BatchHeader memory header)
    {
        header.version = 1;
        header.number = number + 1;
        header.parentHash = parentHash;
        header.timestampMs = (number + 1) * 250;
        header.l1OriginNumber = origin;
        header.l1OriginHash = keccak256(abi.encode(origin));
        header.feeLedgerRoot = root;
        header.epoch = 1;
    }

    /// @dev Posts headers and gives the proof of each.
    function postHeaders(BatchHeader[] memory headers, bool byL1) internal returns (Posted[] memory posted) {
        RunReference memory run = byL1 ? inbox.postL1Header(headers) : inbox.post(headers);
        bytes32[] memory leaves = new bytes32[](headers.length);
        for (uint256 i = 0; i < headers.length; i++) {
            leaves[i] = MerkleTree.leaf(inbox.hashHeader(headers[i]));
        }
        posted = new Posted[](headers.length);
        for (uint256 i = 0; i < headers.length; i++) {
            (, bytes32[] memory proof) = MerkleProofs.prove(leaves, i);
            posted[i] = Posted({ header: headers[i], run: run, proof: proof });
        }
    }

    /// @dev Posts one certified header over `accounts` with the given origin.
    function postLedger(Account[] memory accounts, uint64 origin) internal returns (Posted memory) {
        (uint64 number,,,) = inbox.head();
        BatchHeader[] memory headers = new BatchHeader[](1);
        headers[0] = nextHeader(number, inbox.headHash(), origin, ledgerRoot(accounts));
        return postHeaders(headers, false)[0];
    }

    function accountProof(Posted memory posted, Account[] memory accounts, uint256 index)
        internal
        pure
        returns (FeeVault.AccountProof memory)
    {
        (, bytes32[] memory siblings) = MerkleProofs.prove(leavesOf(accounts), index);
        Account memory a = accounts[index];
        return FeeVault.AccountProof({
            payer: a.payer,
            balance: a.balance,
            withdrawn: a.withdrawn,
            noncesHash: a.noncesHash,
            index: uint64(index),
            count: uint64(accounts.length),
            siblings: siblings,
            header: posted.header,
            run: posted.run,
            headerProof: posted.proof
        });
    }

    /// @dev `count` accounts, sorted by payer.
    function manyAccounts(uint256 count) internal pure returns (Account[] memory accounts) {
        accounts = new Account[](count);
        for (uint256 i = 0; i < count; i++) {
            accounts[i] = Account(
                address(uint160(0x10000 + i)), uint128(1 ether + i), uint128(i), keccak256(abi.encode(i))
            );
        }
    }
}
