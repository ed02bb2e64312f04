// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FixedPointMathLib } from "solady/utils/FixedPointMathLib.sol";

/// @title Deposits of ether and calls from L1 to L2
/// @notice The OP stack's deposit interface and event, so that its wallets and tools work: each event becomes a deposit
/// transaction (type 0x7e) in the first L2 block whose L1 origin reaches it (docs/protocol.md, "Blocks"). The sender
/// pays no L2 gas and no fee account is needed; whatever becomes of the call on L2, the ether is minted there.
///
/// **There is no way back yet.** Withdrawals from L2 to L1 wait for proved execution: no contract here can check an L2
/// state. What will prove execution becomes the `outlet`, once, and it alone decides what is paid out; until there is
/// one nothing is. The governor announces it and it takes effect `OUTLET_NOTICE` later, so that everybody can look at
/// its code. Without an outlet a portal takes no deposits, unless its operator chose so when it was deployed.
///
/// The gas that L1 gives away on L2 is metered as in the OP stack (ResourceMetering): capped per L1 block, at a price
/// that moves by EIP-1559 around a tenth of the cap and is paid by burning gas of the depositing transaction. Who fills
/// the cap of one L1 block pays more than twice as much in the next, so nobody keeps others out for long.
/// @dev Storage: slot 0 holds `totalDeposited` (u96), the gas price (u64), the block last deposited in (u64) and the gas
/// used in it (u32); slot 1 `outlet`; slot 2 the announced outlet and the time from which it takes effect (u64); slot 3
/// the hash of its code.
contract DepositPortal {
    /// @notice How long an announced outlet waits.
    uint256 public constant OUTLET_NOTICE = 30 days;
    /// @notice Largest data of one deposit, in bytes.
    uint256 public constant MAX_DATA_BYTES = 120_000;
    /// @notice Gas of all deposits of one L1 block together.
    uint64 public constant MAX_GAS_PER_BLOCK = 8_000_000;
    /// @notice Gas of an L1 block's deposits at which the price stays as it is.
    uint64 public constant TARGET_GAS_PER_BLOCK = MAX_GAS_PER_BLOCK / 10;
    /// @notice By which part at most the price moves when a block's deposits have twice the target; an empty block
    /// lowers it by as much.
    uint256 public constant PRICE_CHANGE_DENOMINATOR = 8;
    /// @notice The least price of a deposit's gas, in wei: at an L1 base fee as low as that, gas for gas.
    uint256 public constant MIN_GAS_PRICE_WEI = 1 gwei;
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

    /// @notice Who can announce the outlet, and nothing else.
    address public immutable governor;
    /// @notice Whether deposits are taken although there is no outlet.
    bool public immutable takesDepositsWithoutOutlet;

    /// @notice Sum of all deposits, in wei: all ether there is fits.
    uint96 public totalDeposited;
    /// @dev The price of gas in the block of the last deposit.
    uint64 private lastPriceWei;
    /// @dev The L1 block of the last deposit.
    uint64 private lastBlock;
    /// @dev Gas of the deposits in that block.
    uint32 private lastBlockGas;
    /// @notice What proves execution and pays out; zero while there is none.
    address public outlet;
    /// @notice The announced outlet; zero for none.
    address public announcedOutlet;
    /// @notice The time, in seconds, from which the announced outlet can take effect.
    uint64 public outletFrom;
    /// @notice The hash of the code that the announced outlet had when it was announced.
    bytes32 public announcedCodeHash;

    /// @notice A deposit for L2 from `from` (aliased for a contract) to `to`.
    /// @param version 0.
    /// @param opaqueData mint u256 ‖ value u256 ‖ gasLimit u64 ‖ isCreation u8 ‖ data.
    event TransactionDeposited(
        address indexed from, address indexed to, uint256 indexed version, bytes opaqueData
    );

    /// @notice `outlet` will be the outlet from this time on; the zero address takes an announcement back.
    event OutletAnnounced(address indexed outlet, uint256 from);
    /// @notice `outlet` is the outlet, for good.
    event OutletSet(address indexed outlet);
    /// @notice The outlet paid out.
    event Released(address indexed to, uint256 amount);

    /// @notice The governor is the zero address.
    error ZeroGovernor();
    /// @notice Only the governor may do this.
    error NotGovernor(address caller);
    /// @notice The outlet is set, for good.
    error OutletIsSet(address outlet);
    /// @notice An outlet is a contract: whoever has the key of an account that delegates to one can change its code.
    error NotAContract(address outlet);
    /// @notice No outlet is announced.
    error NoOutletAnnounced();
    /// @notice The announced contract has other code now, or none: announce it anew.
    error OutletChanged(address outlet);
    /// @notice The announced outlet takes effect from this time on.
    error NoticeNotOver(uint256 from);
    /// @notice Only the outlet may do this.
    error NotOutlet(address caller);
    /// @notice The transfer failed.
    error TransferFailed(address to);
    /// @notice There is no way back for what is deposited here, and the operator takes nothing under these conditions.
    error NoOutlet();
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

    /// @param governor_ Who can announce the outlet.
    /// @param takesDepositsWithoutOutlet_ Whether deposits are taken before there is a way back.
    constructor(address governor_, bool takesDepositsWithoutOutlet_) {
        if (governor_ == address(0)) revert ZeroGovernor();
        governor = governor_;
        takesDepositsWithoutOutlet = takesDepositsWithoutOutlet_;
        lastPriceWei = uint64(MIN_GAS_PRICE_WEI);
        lastBlock = uint64(block.number);
    }

    /// @notice Announces what proves execution; replaces an earlier announcement, and the zero address takes it back.
    function announceOutlet(address outlet_) external {
        if (msg.sender != governor) revert NotGovernor(msg.sender);
        if (outlet != address(0)) revert OutletIsSet(outlet);
        if (outlet_ != address(0) && (outlet_.code.length == 0 || delegates(outlet_))) {
            revert NotAContract(outlet_);
        }
        announcedOutlet = outlet_;
        announcedCodeHash = outlet_.codehash;
        outletFrom = uint64(block.timestamp + OUTLET_NOTICE);
        emit OutletAnnounced(outlet_, outletFrom);
    }

    /// @notice Makes the announced contract the outlet when its notice is over. Anyone may (D-2).
    function setOutlet() external {
        if (outlet != address(0)) revert OutletIsSet(outlet);
        if (announcedOutlet == address(0)) revert NoOutletAnnounced();
        if (block.timestamp < outletFrom) revert NoticeNotOver(outletFrom);
        // A contract can end in the transaction that made it, and another one come to the same address.
        if (announcedOutlet.codehash != announcedCodeHash) revert OutletChanged(announcedOutlet);
        outlet = announcedOutlet;
        emit OutletSet(outlet);
    }

    /// @notice Pays `amount` wei to `to`: for the outlet, which proved that L2 burnt as much.
    function release(address to, uint256 amount) external {
        if (msg.sender != outlet || msg.sender == address(0)) revert NotOutlet(msg.sender);
        emit Released(to, amount);
        (bool sent,) = to.call{ value: amount }("");
        if (!sent) revert TransferFailed(to);
    }

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

    /// @notice What a deposit's gas costs in this L1 block, in wei. Paid by burning gas: `gasLimit · price / max(base
    /// fee, 1 gwei)` less what the call used anyway (D-1).
    function gasPriceWei() public view returns (uint64) {
        uint256 blocks = block.number - lastBlock;
        uint256 price = lastPriceWei;
        if (blocks == 0) return uint64(price);
        // EIP-1559 over the last block with deposits, and an empty block's step for each one since.
        uint256 target = TARGET_GAS_PER_BLOCK;
        uint256 used = lastBlockGas;
        uint256 step = target * PRICE_CHANGE_DENOMINATOR;
        if (used >= target) price += price * (used - target) / step;
        else price -= price * (target - used) / step;
        if (blocks > 1 && price > MIN_GAS_PRICE_WEI) {
            int256 kept = int256(1e18 - 1e18 / PRICE_CHANGE_DENOMINATOR);
            // More than 400 empty blocks bring any price down to the least.
            uint256 empty = blocks - 1 < 400 ? blocks - 1 : 400;
            price = price * uint256(FixedPointMathLib.powWad(kept, int256(empty * 1e18))) / 1e18;
        }
        if (price < MIN_GAS_PRICE_WEI) return uint64(MIN_GAS_PRICE_WEI);
        return price < type(uint64).max ? uint64(price) : type(uint64).max;
    }

    /// @notice The least gas limit of a deposit with `length` bytes of data.
    function minimumGasLimit(uint64 length) public pure returns (uint64) {
        return BASE_GAS + GAS_PER_DATA_BYTE * length;
    }

    function depositFor(address to, uint256 value, uint64 gasLimit, bool isCreation, bytes memory data)
        private
    {
        uint256 gasBefore = gasleft();
        if (!takesDepositsWithoutOutlet && outlet == address(0)) revert NoOutlet();
        if (isCreation && to != address(0)) revert CreationWithTarget(to);
        if (data.length > MAX_DATA_BYTES) revert DataTooLarge(data.length, MAX_DATA_BYTES);
        uint64 minimum = minimumGasLimit(uint64(data.length));
        if (gasLimit < minimum) revert GasLimitTooLow(gasLimit, minimum);
        if (gasLimit > MAX_GAS_PER_BLOCK) revert GasLimitTooHigh(gasLimit, MAX_GAS_PER_BLOCK);
        uint64 left = gasLeft();
        if (gasLimit > left) revert DepositGasExhausted(gasLimit, left);

        uint64 price = gasPriceWei();
        totalDeposited += uint96(msg.value);
        lastPriceWei = price;
        lastBlock = uint64(block.number);
        lastBlockGas = uint32(MAX_GAS_PER_BLOCK - left + gasLimit);
        emit TransactionDeposited(
            senderOnL2(), to, VERSION, abi.encodePacked(msg.value, value, gasLimit, isCreation, data)
        );
        uint256 baseFee = block.basefee > MIN_GAS_PRICE_WEI ? block.basefee : MIN_GAS_PRICE_WEI;
        burnGas(gasBefore, uint256(gasLimit) * price / baseFee);
    }

    /// @dev Uses up gas until `cost` is used since `gasBefore`.
    function burnGas(uint256 gasBefore, uint256 cost) private view {
        uint256 count = 0;
        while (gasBefore - gasleft() < cost) {
            unchecked {
                count++;
            }
        }
    }

    /// @dev The caller, aliased when it is a contract. An account that delegates to a contract is still its key's, on
    /// L2 as well, and is not aliased.
    function senderOnL2() private view returns (address) {
        if (msg.sender == tx.origin || delegates(msg.sender)) return msg.sender;
        unchecked {
            return address(uint160(msg.sender) + ALIAS_OFFSET);
        }
    }

    /// @dev Whether it is an account with a delegation.
    function delegates(address account) private view returns (bool) {
        return account.code.length == 23 && bytes3(account.code) == DELEGATION_PREFIX;
    }
}
