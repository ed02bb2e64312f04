// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { DepositPortal } from "../src/DepositPortal.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Deposits from inside a contract.
contract ContractDepositor {
    function deposit(DepositPortal portal, address to) external payable {
        portal.depositTransaction{ value: msg.value }(to, 1, 50_000, false, "");
    }

    function send(DepositPortal portal) external payable {
        (bool sent,) = address(portal).call{ value: msg.value }("");
        require(sent, "not sent");
    }
}

/// @dev Makes the calls of the invariant run and keeps ghost state of ether and of gas per block.
contract DepositPortalHandler is Test {
    DepositPortal internal immutable portal;
    uint256 public deposited;
    uint256 private present = 1_000;
    mapping(uint256 l1Block => uint256 gas) private used;
    uint256 public accepted;
    uint256 public refused;

    constructor(DepositPortal portal_) {
        portal = portal_;
    }

    function passTime(uint256 blocks) external {
        present += bound(blocks, 0, 2);
    }

    function deposit(uint256 amount, uint256 gasLimit, uint256 length) external {
        vm.roll(present);
        // At so dear an L1 the price, which this run drives up, costs next to no gas.
        vm.fee(1 << 63);
        amount = bound(amount, 0, 10 ether);
        length = bound(length, 0, 500);
        uint64 minimum = portal.minimumGasLimit(uint64(length));
        uint64 gas = uint64(bound(gasLimit, minimum, 4_000_000));
        uint256 left = portal.MAX_GAS_PER_BLOCK() - used[present];
        vm.deal(address(this), amount);
        if (gas > left) {
            refused++;
            vm.expectRevert(abi.encodeWithSelector(DepositPortal.DepositGasExhausted.selector, gas, left));
        }
        portal.depositTransaction{ value: amount }(address(1), amount, gas, false, new bytes(length));
        if (gas <= left) record(amount, gas);
    }

    function sendPlainly(uint256 amount) external {
        vm.roll(present);
        vm.fee(1 << 63);
        amount = bound(amount, 0, 10 ether);
        vm.deal(address(this), amount);
        bool fits = used[present] + 100_000 <= portal.MAX_GAS_PER_BLOCK();
        (bool sent,) = address(portal).call{ value: amount }("");
        check(sent == fits, "a plain transfer passes when its gas fits");
        if (sent) record(amount, 100_000);
    }

    function record(uint256 amount, uint256 gas) private {
        deposited += amount;
        used[present] += gas;
        accepted++;
        check(used[present] <= 8_000_000, "more gas than a block has");
        checkEqual(portal.gasLeft(), 8_000_000 - used[present], "gas left");
    }
}

contract DepositPortalTest is Test {
    address internal constant SENDER = address(0x5e4de4);
    address internal constant TARGET = address(0x7a46e7);
    address internal constant GOVERNOR = address(0x60);

    DepositPortal internal portal;
    DepositPortalHandler internal handler;

    event TransactionDeposited(
        address indexed from, address indexed to, uint256 indexed version, bytes opaqueData
    );

    event OutletAnnounced(address indexed outlet, uint256 from);
    event OutletSet(address indexed outlet);
    event Released(address indexed to, uint256 amount);

    function setUp() public {
        vm.roll(1_000);
        portal = new DepositPortal(GOVERNOR, true);
        handler = new DepositPortalHandler(portal);
        vm.deal(SENDER, 100 ether);
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function expectDeposit(address from, address to, bytes memory opaqueData) internal {
        vm.expectEmit(true, true, true, true, address(portal));
        emit TransactionDeposited(from, to, 0, opaqueData);
    }

    function asSender() internal {
        vm.prank(SENDER, SENDER);
    }

    // The event

    function testDepositTransaction() public {
        bytes memory opaqueData = bytes.concat(
            bytes32(uint256(3 ether)),
            bytes32(uint256(2 ether)),
            hex"000000000007a120", // 500,000
            hex"00",
            hex"c0ffee"
        );
        expectDeposit(SENDER, TARGET, opaqueData);
        asSender();
        portal.depositTransaction{ value: 3 ether }(TARGET, 2 ether, 500_000, false, hex"c0ffee");
        checkEqual(portal.totalDeposited(), 3 ether, "total");
        checkEqual(address(portal).balance, 3 ether, "balance");
        checkEqual(portal.gasLeft(), 7_500_000, "gas left");
    }

    function testFuzzDepositTransaction(
        address from,
        address to,
        uint96 mint,
        uint256 value,
        uint64 gasLimit,
        bool isCreation,
        bytes calldata data
    ) public {
        vm.assume(from.code.length == 0);
        if (isCreation) to = address(0);
        gasLimit = uint64(bound(gasLimit, portal.minimumGasLimit(uint64(data.length)), 8_000_000));
        vm.deal(from, mint);
        expectDeposit(
            from,
            to,
            bytes.concat(
                bytes32(uint256(mint)),
                bytes32(value),
                bytes8(gasLimit),
                isCreation ? bytes1(0x01) : bytes1(0x00),
                data
            )
        );
        vm.prank(from, from);
        portal.depositTransaction{ value: mint }(to, value, gasLimit, isCreation, data);
        checkEqual(portal.totalDeposited(), mint, "total");
    }

    function testPlainTransferDepositsToTheSender() public {
        expectDeposit(
            SENDER,
            SENDER,
            bytes.concat(bytes32(uint256(1 ether)), bytes32(uint256(1 ether)), hex"00000000000186a0", hex"00")
        );
        asSender();
        (bool sent,) = address(portal).call{ value: 1 ether }("");
        check(sent, "sent");
        checkEqual(portal.totalDeposited(), 1 ether, "total");
        checkEqual(portal.gasLeft(), 7_900_000, "gas left");
    }

    function testUnknownCallsAreRefused() public {
        (bool done,) = address(portal).call{ value: 1 }(hex"12345678");
        check(!done, "done");
    }

    // Who deposits

    function testContractsAreAliased() public {
        ContractDepositor depositor = new ContractDepositor();
        address aliased;
        unchecked {
            aliased =
                address(uint160(address(depositor)) + uint160(0x1111000000000000000000000000000000001111));
        }
        bytes memory opaqueData =
            bytes.concat(bytes32(uint256(5)), bytes32(uint256(1)), hex"000000000000c350", hex"00");
        vm.deal(address(this), 11);
        expectDeposit(aliased, TARGET, opaqueData);
        depositor.deposit{ value: 5 }(portal, TARGET);

        // By plain transfer the ether goes on to the contract's own address.
        opaqueData = bytes.concat(bytes32(uint256(6)), bytes32(uint256(6)), hex"00000000000186a0", hex"00");
        expectDeposit(aliased, address(depositor), opaqueData);
        depositor.send{ value: 6 }(portal);
    }

    function testAliasWrapsAround() public {
        address high = address(type(uint160).max);
        vm.etch(high, hex"00");
        expectDeposit(
            address(uint160(0x1111000000000000000000000000000000001110)),
            TARGET,
            bytes.concat(bytes32(0), bytes32(0), hex"000000000000c350", hex"00")
        );
        vm.prank(high, SENDER);
        portal.depositTransaction(TARGET, 0, 50_000, false, "");
    }

    /// @dev An account with a delegation is its key's on L2 as well, whoever pays for the L1 transaction.
    function testDelegatedAccountsAreNotAliased() public {
        vm.etch(SENDER, bytes.concat(hex"ef0100", bytes20(TARGET)));
        bytes memory opaqueData = bytes.concat(bytes32(0), bytes32(0), hex"000000000000c350", hex"00");
        expectDeposit(SENDER, TARGET, opaqueData);
        vm.prank(SENDER, address(0xfeed));
        portal.depositTransaction(TARGET, 0, 50_000, false, "");
        expectDeposit(SENDER, TARGET, opaqueData);
        asSender();
        portal.depositTransaction(TARGET, 0, 50_000, false, "");
    }

    /// @dev 23 bytes of other code are a contract's.
    function testShortContractsAreAliased() public {
        vm.etch(SENDER, bytes.concat(hex"600160", bytes20(TARGET)));
        expectDeposit(
            address(uint160(SENDER) + uint160(0x1111000000000000000000000000000000001111)),
            TARGET,
            bytes.concat(bytes32(0), bytes32(0), hex"000000000000c350", hex"00")
        );
        vm.prank(SENDER, address(0xfeed));
        portal.depositTransaction(TARGET, 0, 50_000, false, "");
    }

    // The limits

    function testCreationHasNoTarget() public {
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.CreationWithTarget.selector, TARGET));
        portal.depositTransaction(TARGET, 0, 500_000, true, hex"00");
        portal.depositTransaction(address(0), 0, 500_000, true, hex"00");
    }

    function testGasLimitCoversTheData() public {
        checkEqual(portal.minimumGasLimit(0), 21_000, "without data");
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.GasLimitTooLow.selector, 20_999, 21_000));
        portal.depositTransaction(TARGET, 0, 20_999, false, "");
        portal.depositTransaction(TARGET, 0, 21_000, false, "");
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.GasLimitTooLow.selector, 21_119, 21_120));
        portal.depositTransaction(TARGET, 0, 21_119, false, hex"000102");
        portal.depositTransaction(TARGET, 0, 21_120, false, hex"000102");
    }

    function testGasLimitFitsABlock() public {
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.GasLimitTooHigh.selector, 8_000_001, 8_000_000));
        portal.depositTransaction(TARGET, 0, 8_000_001, false, "");
        portal.depositTransaction(TARGET, 0, 8_000_000, false, "");
    }

    function testDataIsLimited() public {
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.DataTooLarge.selector, 120_001, 120_000));
        portal.depositTransaction(TARGET, 0, 8_000_000, false, new bytes(120_001));
        checkEqual(portal.minimumGasLimit(120_000), 4_821_000, "least gas of the largest data");
        portal.depositTransaction(TARGET, 0, 4_821_000, false, new bytes(120_000));
    }

    function testGasOfOneBlockIsLimitedAndTheNextIsFree() public {
        portal.depositTransaction(TARGET, 0, 7_950_000, false, "");
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.DepositGasExhausted.selector, 50_001, 50_000));
        portal.depositTransaction(TARGET, 0, 50_001, false, "");
        (bool sent,) = address(portal).call{ value: 0 }("");
        check(!sent, "a plain transfer counts too");
        portal.depositTransaction(TARGET, 0, 50_000, false, "");
        checkEqual(portal.gasLeft(), 0, "gas left");
        vm.roll(1_001);
        checkEqual(portal.gasLeft(), 8_000_000, "gas left in the next block");
        portal.depositTransaction(TARGET, 0, 8_000_000, false, "");
    }

    // The price of gas

    /// @dev One deposit that takes a whole L1 block's gas kept out all others, for 32,000 gas a block, for ever. Now it
    /// burns as much gas as it takes, and more than twice as much in each block that follows (D-1).
    function testWhoKeepsOthersOutPaysExponentially() public {
        uint256 price = 1 gwei;
        for (uint256 i = 0; i < 4; i++) {
            checkEqual(portal.gasPriceWei(), price, "price");
            uint256 before = gasleft();
            portal.depositTransaction(TARGET, 0, 8_000_000, false, "");
            uint256 burnt = before - gasleft();
            check(burnt >= 8_000_000 * price / 1 gwei, "paid for");
            check(burnt < 8_000_000 * price / 1 gwei + 20_000, "and no more");
            vm.expectRevert(abi.encodeWithSelector(DepositPortal.DepositGasExhausted.selector, 21_000, 0));
            portal.depositTransaction(TARGET, 0, 21_000, false, "");
            vm.roll(1_001 + i);
            // The target is a tenth of the cap: nine targets above it are nine eighths more.
            price = price * 17 / 8;
        }
    }

    function testThePriceFollowsTheTargetAndFallsBack() public {
        portal.depositTransaction(TARGET, 0, 1_600_000, false, ""); // twice the target
        checkEqual(portal.gasPriceWei(), 1 gwei, "within the block");
        vm.roll(1_001);
        checkEqual(portal.gasPriceWei(), 1.125 gwei, "an eighth more");
        portal.depositTransaction(TARGET, 0, 800_000, false, "");
        vm.roll(1_002);
        checkEqual(portal.gasPriceWei(), 1.125 gwei, "at the target it stays");
        portal.depositTransaction(TARGET, 0, 8_000_000, false, "");
        vm.roll(1_003);
        checkEqual(portal.gasPriceWei(), 2.390625 gwei, "seventeen eighths");
        vm.roll(1_005);
        uint256 two = portal.gasPriceWei(); // two empty blocks: 49/64
        check(two < 1.830322266 gwei && two > 1.830322264 gwei, "49/64");
        vm.roll(2_000);
        checkEqual(portal.gasPriceWei(), 1 gwei, "the least");
        vm.roll(1 << 60);
        checkEqual(portal.gasPriceWei(), 1 gwei, "for ever");
    }

    function testThePriceFallsByHowMuchIsLeftOfTheTarget() public {
        portal.depositTransaction(TARGET, 0, 8_000_000, false, "");
        vm.roll(1_001);
        checkEqual(portal.gasPriceWei(), 2.125 gwei, "seventeen eighths");
        portal.depositTransaction(TARGET, 0, 400_000, false, ""); // half the target
        vm.roll(1_002);
        checkEqual(portal.gasPriceWei(), 1.9921875 gwei, "a sixteenth less");
        vm.roll(2_002); // twice the last block's number
        checkEqual(portal.gasPriceWei(), 1 gwei, "the least");
    }

    function testThePriceHasAnEnd() public {
        vm.fee(type(uint64).max);
        for (uint256 i = 0; i < 34; i++) {
            vm.roll(1_000 + i);
            portal.depositTransaction(TARGET, 0, 8_000_000, false, "");
        }
        checkEqual(portal.gasPriceWei(), type(uint64).max, "as much as fits");
    }

    /// @dev What is burnt may be most of what the caller gives.
    function testTheDepositBurnsMostOfWhatItIsGiven() public {
        portal.depositTransaction{ gas: 8_200_000 }(TARGET, 0, 8_000_000, false, "");
    }

    function testADearL1MakesDepositsGasCheap() public {
        vm.fee(50 gwei);
        uint256 before = gasleft();
        portal.depositTransaction(TARGET, 0, 8_000_000, false, "");
        uint256 burnt = before - gasleft();
        check(burnt >= 160_000 && burnt < 180_000, "a fiftieth");
    }

    function testFuzzPrice(uint32[6] calldata gas, uint16[6] calldata waits) public {
        uint256 present = 1_000;
        for (uint256 i = 0; i < 6; i++) {
            uint64 before = portal.gasPriceWei();
            uint64 gasLimit =
                uint64(bound(gas[i], 21_000, portal.gasLeft() < 21_000 ? 21_000 : portal.gasLeft()));
            if (portal.gasLeft() >= gasLimit) portal.depositTransaction(TARGET, 0, gasLimit, false, "");
            checkEqual(portal.gasPriceWei(), before, "one price in a block");
            present += bound(waits[i], 1, 500);
            vm.roll(present);
            uint64 next = portal.gasPriceWei();
            check(next >= 1 gwei && next <= uint256(before) * 17 / 8, "moves as far as it may");
        }
    }

    // The way back

    function testNoDepositsWithoutAWayBackUnlessTheOperatorSaysSo() public {
        portal = new DepositPortal(GOVERNOR, false);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NoOutlet.selector));
        portal.depositTransaction(TARGET, 0, 50_000, false, "");
        (bool sent,) = address(portal).call{ value: 0 }("");
        check(!sent, "nor by plain transfer");
        setOutlet(address(handler));
        portal.depositTransaction(TARGET, 0, 50_000, false, "");
    }

    function setOutlet(address outlet) internal {
        vm.prank(GOVERNOR);
        portal.announceOutlet(outlet);
        vm.warp(block.timestamp + 31 days);
        vm.expectEmit(true, true, true, true, address(portal));
        emit OutletSet(outlet);
        portal.setOutlet();
    }

    /// @dev Rule D-2.
    function testTheOutletIsSetOnceAndWithNotice() public {
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.ZeroGovernor.selector));
        new DepositPortal(address(0), true);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NoOutletAnnounced.selector));
        portal.setOutlet();
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NotGovernor.selector, address(this)));
        portal.announceOutlet(address(handler));
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NotAContract.selector, SENDER));
        portal.announceOutlet(SENDER);
        address delegating = address(0x7702);
        vm.etch(delegating, abi.encodePacked(hex"ef0100", address(handler)));
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NotAContract.selector, delegating));
        portal.announceOutlet(delegating);

        uint256 from = block.timestamp + 30 days;
        vm.expectEmit(true, true, true, true, address(portal));
        emit OutletAnnounced(address(handler), from);
        vm.prank(GOVERNOR);
        portal.announceOutlet(address(handler));
        vm.warp(from - 1);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NoticeNotOver.selector, from));
        portal.setOutlet();
        vm.prank(GOVERNOR);
        portal.announceOutlet(address(0)); // taken back
        vm.warp(from);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NoOutletAnnounced.selector));
        portal.setOutlet();

        setOutlet(address(handler));
        checkEqual(portal.outlet(), address(handler), "outlet");
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.OutletIsSet.selector, address(handler)));
        portal.setOutlet();
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.OutletIsSet.selector, address(handler)));
        portal.announceOutlet(address(this));
    }

    /// @dev A contract can end in the transaction that made and announced it, and another one come to its address when
    /// the notice is over: what takes effect is the code that everybody could look at.
    function testTheOutletHasTheCodeThatWasAnnounced() public {
        address announced = address(0x0c7);
        vm.etch(announced, hex"6001");
        vm.prank(GOVERNOR);
        portal.announceOutlet(announced);
        vm.warp(block.timestamp + 30 days);
        bytes memory reason = abi.encodeWithSelector(DepositPortal.OutletChanged.selector, announced);
        vm.etch(announced, "");
        vm.expectRevert(reason);
        portal.setOutlet();
        vm.etch(announced, hex"6002");
        vm.expectRevert(reason);
        portal.setOutlet();
        vm.etch(announced, hex"6001");
        portal.setOutlet();
        checkEqual(portal.outlet(), announced, "as announced");
    }

    function testOnlyTheOutletPaysOut() public {
        portal.depositTransaction{ value: 5 ether }(TARGET, 0, 50_000, false, "");
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NotOutlet.selector, GOVERNOR));
        portal.release(GOVERNOR, 5 ether);
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.NotOutlet.selector, address(0)));
        vm.prank(address(0));
        portal.release(GOVERNOR, 5 ether);
        setOutlet(address(handler));
        vm.expectEmit(true, true, true, true, address(portal));
        emit Released(TARGET, 2 ether);
        vm.prank(address(handler));
        portal.release(TARGET, 2 ether);
        checkEqual(TARGET.balance, 2 ether, "paid");
        checkEqual(address(portal).balance, 3 ether, "left");
        vm.prank(address(handler));
        vm.expectRevert(abi.encodeWithSelector(DepositPortal.TransferFailed.selector, address(handler)));
        portal.release(address(handler), 1);
    }

    // Invariants

    function invariantEtherStaysLocked() public view {
        checkEqual(address(portal).balance, portal.totalDeposited(), "balance");
        checkEqual(portal.totalDeposited(), handler.deposited(), "total");
    }

    // Gas; 21,000 and the calldata come on top

    function testGasDepositTransaction() public {
        portal.depositTransaction{ value: 1 }(TARGET, 0, 50_000, false, "");
        vm.roll(1_001);
        vm.cool(address(portal));
        asSender();
        portal.depositTransaction{ value: 1 ether }(TARGET, 1 ether, 100_000, false, "");
        vm.snapshotGasLastCall("DepositPortal.depositTransaction, no data");
    }

    function testGasDepositTransactionWithData() public {
        portal.depositTransaction{ value: 1 }(TARGET, 0, 50_000, false, "");
        vm.roll(1_001);
        bytes memory data = new bytes(1_024);
        vm.cool(address(portal));
        asSender();
        portal.depositTransaction{ value: 1 ether }(TARGET, 1 ether, 100_000, false, data);
        vm.snapshotGasLastCall("DepositPortal.depositTransaction, 1,024 bytes");
    }
}
