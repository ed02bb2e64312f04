// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Deposits to fee accounts
/// @notice A deposit credits `payer` in the fee ledger of the rollup once the L1 block that holds it is the final
/// origin of a batch (docs/protocol.md, "Fee ledger"). The ledger itself is kept by the batch headers, not here.
/// @dev **There are no withdrawals yet.** This version only takes deposits: ether that enters stays here until a
/// later version of the deployment pays claims and withdrawals against the fee-ledger roots of certified headers.
/// Nobody, no owner and no governor, can take it out.
contract FeeVault {
    /// @notice All deposits together stay below this, so that no sum of balances in the ledger overflows 128 bits.
    uint256 public constant TOTAL_LIMIT_WEI = 1 << 127;

    /// @notice Sum of all deposits, in wei.
    uint256 public totalDeposited;

    /// @notice `from` paid `amount` wei into the fee account of `payer`.
    event Deposited(address indexed payer, address indexed from, uint256 amount);

    /// @notice The account to credit is the zero address.
    error ZeroPayer();
    /// @notice No ether came with the call.
    error ZeroAmount();
    /// @notice The sum of all deposits would reach `TOTAL_LIMIT_WEI`.
    error TotalTooLarge(uint256 total);

    /// @notice Credits the fee account of `payer` with the ether sent. Anyone may pay for anyone.
    function deposit(address payer) external payable {
        if (payer == address(0)) revert ZeroPayer();
        if (msg.value == 0) revert ZeroAmount();
        uint256 total = totalDeposited + msg.value;
        if (total >= TOTAL_LIMIT_WEI) revert TotalTooLarge(total);
        totalDeposited = total;
        emit Deposited(payer, msg.sender, msg.value);
    }
}
