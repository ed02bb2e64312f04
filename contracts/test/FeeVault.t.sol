// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FeeVault } from "../src/FeeVault.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Makes the calls of the invariant run and remembers what should have come of them.
contract FeeVaultHandler is Test {
    FeeVault internal immutable vault;
    uint256 public expectedTotal;

    constructor(FeeVault vault_) {
        vault = vault_;
    }

    function deposit(address payer, uint256 amount) external {
        amount = bound(amount, 0, 1 << 124);
        vm.deal(address(this), amount);
        try vault.deposit{ value: amount }(payer) {
            expectedTotal += amount;
            check(payer != address(0) && amount != 0, "accepted nothing for nobody");
        } catch {
            bool full = expectedTotal + amount >= vault.TOTAL_LIMIT_WEI();
            check(payer == address(0) || amount == 0 || full, "refused without a reason");
        }
    }

    function sendPlainly(uint256 amount) external {
        amount = bound(amount, 1, 1 ether);
        vm.deal(address(this), amount);
        (bool sent,) = address(vault).call{ value: amount }("");
        check(!sent, "plain transfer accepted");
    }
}

contract FeeVaultTest is Test {
    FeeVault internal vault;
    FeeVaultHandler internal handler;

    event Deposited(address indexed payer, address indexed from, uint256 amount);

    function setUp() public {
        vault = new FeeVault();
        handler = new FeeVaultHandler(vault);
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function testDeposit() public {
        address payer = address(0xa11ce);
        address from = address(0xb0b);
        vm.deal(from, 3 ether);
        vm.expectEmit(true, true, true, true, address(vault));
        emit Deposited(payer, from, 2 ether);
        vm.prank(from);
        vault.deposit{ value: 2 ether }(payer);
        vm.snapshotGasLastCall("FeeVault.deposit, first");
        checkEqual(vault.totalDeposited(), 2 ether, "total");
        checkEqual(address(vault).balance, 2 ether, "balance");
    }

    function testFuzzDeposit(address payer, address from, uint128 first, uint128 second) public {
        vm.assume(payer != address(0));
        first = uint128(bound(first, 1, (1 << 126) - 1));
        second = uint128(bound(second, 1, (1 << 126) - 1));
        vm.deal(from, uint256(first) + second);
        vm.prank(from);
        vault.deposit{ value: first }(payer);
        vm.expectEmit(true, true, true, true, address(vault));
        emit Deposited(payer, from, second);
        vm.prank(from);
        vault.deposit{ value: second }(payer);
        checkEqual(vault.totalDeposited(), uint256(first) + second, "total");
    }

    function testZeroPayer() public {
        vm.expectRevert(abi.encodeWithSelector(FeeVault.ZeroPayer.selector));
        vault.deposit{ value: 1 }(address(0));
    }

    function testZeroAmount() public {
        vm.expectRevert(abi.encodeWithSelector(FeeVault.ZeroAmount.selector));
        vault.deposit(address(1));
    }

    function testTotalTooLarge() public {
        uint256 limit = vault.TOTAL_LIMIT_WEI();
        vm.deal(address(this), limit);
        vault.deposit{ value: limit - 1 }(address(1));
        vm.expectRevert(abi.encodeWithSelector(FeeVault.TotalTooLarge.selector, limit));
        vault.deposit{ value: 1 }(address(1));
    }

    function testPlainTransferRefused() public {
        (bool sent,) = address(vault).call{ value: 1 }("");
        check(!sent, "sent");
    }

    function invariantHoldsWhatWasDeposited() public view {
        checkEqual(vault.totalDeposited(), handler.expectedTotal(), "total");
        checkEqual(address(vault).balance, handler.expectedTotal(), "balance");
        check(vault.totalDeposited() < vault.TOTAL_LIMIT_WEI(), "limit");
    }
}
