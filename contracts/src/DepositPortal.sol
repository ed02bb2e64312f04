// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

/// @title Deposits of ether and calls from L1 to L2
/// @notice The OP stack's deposit interface and event, so that its wallets and tools work: each event becomes a deposit
/// transaction (type 0x7e) in the first L2 block whose L1 origin reaches it (docs/protocol.md, "Blocks"). The sender
/// pays no L2 gas and no fee account is needed; whatever becomes of the call on L2, the ether is minted there.
///
/// **There is no way back yet.** Withdrawals from L2 to L1 wait for proved execution: no contract here can check an L2
/// state, so nothing pays out. Ether that enters stays here; no owner and no governor can take it out.
///
/// The gas that L1 gives away on L2 is capped per L1 block and has no price beyond the L1 transaction's: whoever wants
/// to keep others from depositing can use up the cap, at the cost of one such transaction in every L1 block.
/// @dev Storage: slot 0 holds `totalDeposited` (16 bytes), the block last deposited in (8) and the gas used in it (8).
contract DepositPortal {
    /// @notice Largest data of one deposit, in bytes.
    uint256 public constant MAX_DATA_BYTES = 120_000;
    /// @notice Gas of all deposits of one L1 block together.
    uint64 public constant MAX_GAS_PER_BLOCK = 8_000_000;
    /// @notice Gas of a deposit by plain transfer.
    uint64 public constant RECEIVE_GAS_LIMIT = 100_000;
    /// @notice Least gas limit of a deposit without data.
    uint64 public constant BASE_GAS = 21_000;
    /// @notice What every byte of data adds to the least gas limit.
    uint64 public constant GAS_PER_DATA_BYTE = 40;

    /// @dev Version of the event's `opaqueData`.
    uint256 private constant VERSION = 0;
    /// @dev Added to a contract's address, so that a contract on L1 cannot act as another one with that address on L2.
    uint160 private constant ALIAS_OFFSET = uint160(0x1111000000000000000000000000000000001111);
    /// @dev What the code of an account with a delegation (EIP-7702) begins with; the delegate's address follows.
    bytes3 private constant DELEGATION_PREFIX = 0xef0100;

    /// @notice Sum of all deposits, in wei.
    uint128 public totalDeposited;
    /// @dev The L1 block of the last deposit.
    uint64 private lastBlock;
    /// @dev Gas of the deposits in that block.
    uint64 private lastBlockGas;

    /// @notice A deposit for L2 from `from` (aliased for a contract) to `to`.
    /// @param version 0.
    /// @param opaqueData mint u256 ‖ value u256 ‖ gasLimit u64 ‖ isCreation u8 ‖ data.
    event TransactionDeposited(
        address indexed from, address indexed to, uint256 indexed version, bytes opaqueData
    );

    /// @notice A creation has no target: give the zero address.
    error CreationWithTarget(address to);
    /// @notice The gas limit does not cover the call's data: give at least `minimum`.
    error GasLimitTooLow(uint64 gasLimit, uint64 minimum);
    /// @notice No L1 block takes so much: give at most `maximum`.
    error GasLimitTooHigh(uint64 gasLimit, uint64 maximum);
    /// @notice More data than `MAX_DATA_BYTES`.
    error DataTooLarge(uint256 length, uint256 maximum);
    /// @notice This L1 block's deposits leave only `left` gas: try again in the next block.
    error DepositGasExhausted(uint64 gasLimit, uint64 left);

    /// @notice Deposits the ether sent to the sender itself, with `RECEIVE_GAS_LIMIT`.
    /// @dev For plain accounts. From a contract the ether is minted to its alias and sent on to its own address, where
    /// on L2 perhaps nobody has a key: contracts call `depositTransaction`.
    receive() external payable {
        depositFor(msg.sender, msg.value, RECEIVE_GAS_LIMIT, false, "");
    }

    /// @notice Has L2 mint the ether sent to the sender (a contract's alias) and call `to` from it.
    /// @param to Whom to call; the zero address for a creation.
    /// @param value What the call carries, in wei, out of the sender's L2 balance with the minted; what is more than
    /// that balance makes the call fail.
    /// @param gasLimit Gas of the call: at least 21,000 and 40 for a byte of data.
    /// @param isCreation Whether `data` is the creation code of a contract.
    /// @param data Input of the call, at most 120,000 bytes.
    function depositTransaction(
        address to,
        uint256 value,
        uint64 gasLimit,
        bool isCreation,
        bytes calldata data
    ) external payable {
        depositFor(to, value, gasLimit, isCreation, data);
    }

    /// @notice How much gas deposits in this L1 block can still have.
    function gasLeft() public view returns (uint64) {
        return block.number == lastBlock ? MAX_GAS_PER_BLOCK - lastBlockGas : MAX_GAS_PER_BLOCK;
    }

    /// @notice The least gas limit of a deposit with `length` bytes of data.
    function minimumGasLimit(uint64 length) public pure returns (uint64) {
        return BASE_GAS + GAS_PER_DATA_BYTE * length;
    }

    function depositFor(address to, uint256 value, uint64 gasLimit, bool isCreation, bytes memory data)
        private
    {
        if (isCreation && to != address(0)) revert CreationWithTarget(to);
        if (data.length > MAX_DATA_BYTES) revert DataTooLarge(data.length, MAX_DATA_BYTES);
        uint64 minimum = minimumGasLimit(uint64(data.length));
        if (gasLimit < minimum) revert GasLimitTooLow(gasLimit, minimum);
        if (gasLimit > MAX_GAS_PER_BLOCK) revert GasLimitTooHigh(gasLimit, MAX_GAS_PER_BLOCK);
        uint64 left = gasLeft();
        if (gasLimit > left) revert DepositGasExhausted(gasLimit, left);

        // All ether there is fits 128 bits.
        totalDeposited += uint128(msg.value);
        lastBlock = uint64(block.number);
        lastBlockGas = MAX_GAS_PER_BLOCK - left + gasLimit;
        emit TransactionDeposited(
            senderOnL2(), to, VERSION, abi.encodePacked(msg.value, value, gasLimit, isCreation, data)
        );
    }

    /// @dev The caller, aliased when it is a contract. An account that delegates to a contract is still its key's, on
    /// L2 as well, and is not aliased.
    function senderOnL2() private view returns (address) {
        if (msg.sender == tx.origin) return msg.sender;
        if (msg.sender.code.length == 23 && bytes3(msg.sender.code) == DELEGATION_PREFIX) return msg.sender;
        unchecked {
            return address(uint160(msg.sender) + ALIAS_OFFSET);
        }
    }
}
