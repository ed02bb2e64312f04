// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FeeVault } from "../../src/FeeVault.sol";
import { IBlindedInbox, RunReference, Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "../../src/interfaces/ICommitteeRegistry.sol";
import { BatchHeader } from "../../src/libraries/BatchHeaders.sol";
import { FeeLedger } from "../../src/libraries/FeeLedger.sol";
import { LedgerTrees } from "./LedgerTrees.sol";
import { MerkleProofs } from "./MerkleProofs.sol";
import { MerkleTree } from "../../src/libraries/MerkleTree.sol";
import { MockInbox } from "./MockInbox.sol";
import { Test } from "./Test.sol";

/// @notice A ledger of fee accounts, the headers that commit to it, and an inbox and vault to prove them to.
abstract contract FeeRollup is Test {
    address internal constant SEQUENCER = address(0x5e9);
    uint32 internal constant POSTING_DEADLINE = 10;
    uint32 internal constant WITHDRAWAL_DELAY = 20;
    uint32 internal constant CLAIM_DELAY = 4;
    uint64 internal constant START_BLOCK = 1_000;

    struct Account {
        address payer;
        uint128 balance;
        uint128 withdrawn;
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
                withdrawalDelay: WITHDRAWAL_DELAY,
                maxOriginAgeSeconds: 14_400
            })
        );
        vault = new FeeVault(inbox, ICommitteeRegistry(address(inbox)), CLAIM_DELAY);
    }

    /// @dev The entries of a ledger.
    function entriesOf(Account[] memory accounts)
        internal
        pure
        returns (bytes32[] memory keys, bytes32[] memory leaves)
    {
        keys = new bytes32[](accounts.length);
        leaves = new bytes32[](accounts.length);
        for (uint256 i = 0; i < accounts.length; i++) {
            Account memory a = accounts[i];
            keys[i] = FeeLedger.accountKey(a.payer);
            leaves[i] = FeeLedger.accountLeaf(keys[i], a.balance, a.withdrawn);
        }
    }

    function ledgerRoot(Account[] memory accounts) internal pure returns (bytes32) {
        (bytes32[] memory keys, bytes32[] memory leaves) = entriesOf(accounts);
        return LedgerTrees.root(keys, leaves);
    }

    /// @dev A header after `number` and `parentHash`.
    function nextHeader(uint64 number, bytes32 parentHash, uint64 origin, bytes32 root)
        internal
        pure
        returns (BatchHeader memory header)
    {
        header.version = 2;
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
        Account memory a = accounts[index];
        (bytes32[] memory keys, bytes32[] memory leaves) = entriesOf(accounts);
        return FeeVault.AccountProof({
            payer: a.payer,
            balance: a.balance,
            withdrawn: a.withdrawn,
            siblings: LedgerTrees.siblings(keys, leaves, FeeLedger.accountKey(a.payer)),
            header: posted.header,
            run: posted.run,
            headerProof: posted.proof
        });
    }

    /// @dev `count` accounts.
    function manyAccounts(uint256 count) internal pure returns (Account[] memory accounts) {
        accounts = new Account[](count);
        for (uint256 i = 0; i < count; i++) {
            accounts[i] = Account(address(uint160(0x10000 + i)), uint128(1 ether + i), uint128(i));
        }
    }
}
