// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FeeLedger } from "../src/libraries/FeeLedger.sol";
import { LedgerTrees } from "./helpers/LedgerTrees.sol";
import { Test } from "./helpers/Test.sol";

/// @dev The library takes calldata.
contract LedgerVerifier {
    function verify(
        bytes32 root,
        address payer,
        uint128 balance,
        uint128 withdrawn,
        bytes32[] calldata siblings
    ) external pure returns (bool) {
        return FeeLedger.verify(root, payer, balance, withdrawn, siblings);
    }

    function rootFromProof(bytes32 key, bytes32 leaf, bytes32[] calldata siblings)
        external
        pure
        returns (bytes32)
    {
        return FeeLedger.rootFromProof(key, leaf, siblings);
    }
}

/// @dev What passes for an account, and what must not: docs/protocol.md, "Fee ledger root".
contract FeeLedgerTest is Test {
    LedgerVerifier internal verifier;
    bytes32[] internal keys;
    bytes32[] internal leaves;

    function setUp() public {
        verifier = new LedgerVerifier();
    }

    // The ledger, written down a second time

    function payerAt(uint256 index) internal pure returns (address) {
        return address(uint160(uint256(keccak256(abi.encode("payer", index)))));
    }

    function accountKey(address payer) internal pure returns (bytes32) {
        return keccak256(bytes.concat(hex"00", bytes20(payer)));
    }

    function nonceKey(address payer, uint64 nonce) internal pure returns (bytes32) {
        return keccak256(bytes.concat(hex"01", bytes20(payer), bytes8(nonce)));
    }

    function addAccount(address payer, uint128 balance, uint128 withdrawn) internal {
        bytes32 key = accountKey(payer);
        keys.push(key);
        leaves.push(keccak256(bytes.concat(hex"00", key, bytes16(balance), bytes16(withdrawn))));
    }

    function addNonce(address payer, uint64 nonce, uint64 expiry) internal {
        bytes32 key = nonceKey(payer, nonce);
        keys.push(key);
        leaves.push(keccak256(bytes.concat(hex"00", key, bytes8(expiry))));
    }

    function root() internal view returns (bytes32) {
        return LedgerTrees.root(keys, leaves);
    }

    function pathTo(bytes32 key) internal view returns (bytes32[] memory) {
        return LedgerTrees.siblings(keys, leaves, key);
    }

    /// @dev Thirty accounts, and sixty payers with a nonce each: half of them have no account.
    function fill() internal {
        for (uint256 i = 0; i < 60; i++) {
            if (i < 30) addAccount(payerAt(i), 7, uint128(i));
            addNonce(payerAt(i), uint64(i), 1 << 60);
        }
    }

    // What passes

    function testEveryAccountIsProved() public {
        fill();
        bytes32 committed = root();
        for (uint256 i = 0; i < 60; i++) {
            bytes32[] memory path = pathTo(accountKey(payerAt(i)));
            check(verifier.verify(committed, payerAt(i), 7, uint128(i), path) == (i < 30), vm.toString(i));
            check(!verifier.verify(committed, payerAt(i), 8, uint128(i), path), "another balance");
            check(!verifier.verify(committed, payerAt(i), uint128(i), 7, path) || i == 7, "exchanged");
            check(!verifier.verify(committed, payerAt(i + 1), 7, uint128(i), path), "another payer");
        }
    }

    function testFuzzProof(
        uint256 accounts,
        uint256 nonces,
        uint256 index,
        uint128 balance,
        uint128 withdrawn
    ) public {
        accounts = bound(accounts, 1, 40);
        nonces = bound(nonces, 0, 40);
        index = bound(index, 0, accounts - 1);
        if (balance == 0 && withdrawn == 0) balance = 1;
        for (uint256 i = 0; i < accounts; i++) {
            if (i == index) addAccount(payerAt(i), balance, withdrawn);
            else addAccount(payerAt(i), uint128(i + 1), 0);
        }
        for (uint256 i = 0; i < nonces; i++) {
            addNonce(payerAt(i / 3), uint64(i), uint64(i));
        }
        bytes32[] memory path = pathTo(accountKey(payerAt(index)));
        check(verifier.verify(root(), payerAt(index), balance, withdrawn, path), "proof");
        check(!verifier.verify(root(), payerAt(index), balance, withdrawn ^ 1, path), "another amount");
    }

    // What must not pass

    /// @dev The right account by every path that is not its own: cut, lengthened and exchanged at every place.
    function testNoOtherPathLeadsToAnAccount() public {
        fill();
        bytes32 committed = root();
        for (uint256 who = 0; who < 30; who += 7) {
            bytes32[] memory path = pathTo(accountKey(payerAt(who)));
            check(verifier.verify(committed, payerAt(who), 7, uint128(who), path), "its own");
            for (uint256 at = 0; at <= path.length; at++) {
                refuses(committed, who, inserted(path, at, bytes32(0)));
                refuses(committed, who, inserted(path, at, keccak256("junk")));
                if (at == path.length) continue;
                refuses(committed, who, inserted(path, at, path[at]));
                refuses(committed, who, cut(path, 0, at));
                refuses(committed, who, cut(path, at + 1, path.length));
                bytes32[] memory changed = cut(path, 0, path.length);
                changed[at] ^= bytes32(uint256(1) << (at * 9));
                refuses(committed, who, changed);
                for (uint256 other = at + 1; other < path.length; other++) {
                    // Empty subtrees are alike.
                    if (path[at] == path[other]) continue;
                    changed = cut(path, 0, path.length);
                    (changed[at], changed[other]) = (changed[other], changed[at]);
                    refuses(committed, who, changed);
                }
            }
            refuses(committed, who, new bytes32[](256));
            refuses(committed, who, new bytes32[](257));
        }
    }

    function refuses(bytes32 committed, uint256 who, bytes32[] memory path) internal view {
        check(!verifier.verify(committed, payerAt(who), 7, uint128(who), path), "another path");
    }

    function cut(bytes32[] memory path, uint256 from, uint256 to)
        internal
        pure
        returns (bytes32[] memory part)
    {
        part = new bytes32[](to - from);
        for (uint256 i = from; i < to; i++) {
            part[i - from] = path[i];
        }
    }

    function inserted(bytes32[] memory path, uint256 at, bytes32 extra)
        internal
        pure
        returns (bytes32[] memory longer)
    {
        longer = new bytes32[](path.length + 1);
        for (uint256 i = 0; i < longer.length; i++) {
            longer[i] = i == at ? extra : path[i < at ? i : i - 1];
        }
    }

    /// @dev Live nonces and inner nodes, offered as accounts with every number that their bytes could be read as.
    function testNothingElseInTheTreePassesForAnAccount() public {
        fill();
        bytes32 committed = root();
        for (uint256 i = 0; i < 60; i += 11) {
            bytes32[] memory path = pathTo(nonceKey(payerAt(i), uint64(i)));
            for (uint256 length = 0; length <= path.length; length++) {
                bytes32 node = length == 0 ? committed : path[length - 1];
                bytes32[] memory part = cut(path, 0, length);
                for (uint256 claimed = 0; claimed < 60; claimed += i < 30 ? 5 : 7) {
                    address payer = payerAt(claimed);
                    check(!verifier.verify(committed, payer, 1 << 60, 0, part), "expiry as balance");
                    check(!verifier.verify(committed, payer, 0, 1 << 60, part), "expiry as withdrawn");
                    check(!verifier.verify(committed, payer, 1 << 124, 0, part), "expiry in front");
                    check(
                        !verifier.verify(
                            committed, payer, uint128(uint256(node) >> 128), uint128(uint256(node)), part
                        ),
                        "a node as account"
                    );
                }
            }
        }
    }

    function testAnAccountOfNothingHasNoLeaf() public {
        addAccount(payerAt(0), 0, 0);
        check(!verifier.verify(root(), payerAt(0), 0, 0, new bytes32[](0)), "empty account");
        check(!verifier.verify(bytes32(0), payerAt(0), 0, 0, new bytes32[](0)), "empty ledger");
        check(!verifier.verify(bytes32(0), payerAt(0), 1, 1, new bytes32[](0)), "empty ledger, some account");
    }

    // Long paths

    /// @dev Two keys that differ in their last bit: a path of 256 siblings.
    function testKeysThatPartAtTheLastBit() public {
        bytes32 leaf = keccak256("one");
        keys = [bytes32(0), bytes32(uint256(1)), bytes32(type(uint256).max)];
        leaves = [leaf, keccak256("other"), keccak256("third")];
        bytes32[] memory path = pathTo(bytes32(0));
        checkEqual(path.length, 256, "length");
        checkEqual(path[255], keccak256("other"), "last");
        checkEqual(path[0], keccak256("third"), "first");
        checkEqual(verifier.rootFromProof(bytes32(0), leaf, path), root(), "root");
        check(verifier.rootFromProof(bytes32(uint256(1)), leaf, path) != root(), "the other side");
    }

    /// @dev Two payers whose keys begin alike, ground out as an attacker would.
    function testAccountsWithALongCommonPrefix() public {
        uint256 first = uint256(accountKey(address(1)));
        uint160 other = 2;
        while ((first ^ uint256(accountKey(address(other)))) >> 244 != 0) other++;
        addAccount(address(1), 10, 1);
        addAccount(address(other), 20, 2);
        bytes32[] memory path = pathTo(accountKey(address(1)));
        bytes32[] memory otherPath = pathTo(accountKey(address(other)));
        check(path.length > 12 && otherPath.length == path.length, "length");
        check(verifier.verify(root(), address(1), 10, 1, path), "one");
        check(verifier.verify(root(), address(other), 20, 2, otherPath), "other");
        check(!verifier.verify(root(), address(1), 20, 2, path), "the other's amounts");
        check(!verifier.verify(root(), address(1), 20, 2, otherPath), "the other's path");
        check(!verifier.verify(root(), address(other), 20, 2, path), "by this path");
    }
}
