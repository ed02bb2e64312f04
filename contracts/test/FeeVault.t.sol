// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FeeVault } from "../src/FeeVault.sol";
import { IBlindedInbox } from "../src/interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "../src/interfaces/ICommitteeRegistry.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { FeeRollup } from "./helpers/FeeRollup.sol";

/// @dev A payer that is a contract: it refuses ether, or claims and exits once more while it is being paid.
contract ContractPayer {
    FeeVault private immutable vault;
    bool private accepts;
    bytes private again;
    uint256 public reentered;

    constructor(FeeVault vault_) {
        vault = vault_;
    }

    function request(uint128 amount) external {
        vault.requestWithdrawal(amount);
    }

    function accept(bytes calldata again_) external {
        accepts = true;
        again = again_;
    }

    receive() external payable {
        require(accepts, "no ether, please");
        if (again.length == 0) return;
        (bool done,) = address(vault).call(again);
        if (done) reentered++;
    }
}

contract FeeVaultTest is FeeRollup {
    address internal constant ALICE = address(0xa11ce);
    address internal constant BOB = address(0xb0b);

    event Deposited(address indexed payer, address indexed from, uint256 amount);
    event WithdrawalRequested(address indexed payer, uint128 amount);
    event Claimed(address indexed payer, uint256 amount, uint64 indexed number);
    event Exited(address indexed payer, uint256 amount, uint64 indexed number);

    function setUp() public {
        deployContracts();
        vm.deal(address(this), 1_000 ether);
        vault.deposit{ value: 100 ether }(ALICE);
        vault.deposit{ value: 100 ether }(BOB);
    }

    // Helpers

    /// @dev Alice's account and Bob's; Alice stands in the middle of three.
    function ledger(uint128 balance, uint128 withdrawn) internal pure returns (Account[] memory accounts) {
        accounts = new Account[](3);
        accounts[0] = Account(BOB, 40 ether, 0);
        accounts[1] = Account(ALICE, balance, withdrawn);
        accounts[2] = Account(address(0xc0de0), 1 ether, 2 ether);
    }

    function proofOf(Posted memory posted, uint128 balance, uint128 withdrawn)
        internal
        pure
        returns (FeeVault.AccountProof memory)
    {
        return accountProof(posted, ledger(balance, withdrawn), 1);
    }

    function request(address payer, uint128 amount) internal {
        vm.prank(payer);
        vault.requestWithdrawal(amount);
    }

    /// @dev Claims for Alice, when the header is old enough, and checks what moved. For all others no time passes.
    function claimsFor(FeeVault.AccountProof memory proof, uint256 amount) internal mature(proof) {
        uint256 before = proof.payer.balance;
        vm.expectEmit(true, true, true, true, address(vault));
        emit Claimed(proof.payer, amount, proof.header.number);
        vault.claim(proof);
        checkEqual(proof.payer.balance - before, amount, "claimed");
    }

    function exitsFor(FeeVault.AccountProof memory proof, uint256 amount) internal {
        uint256 before = proof.payer.balance;
        vm.expectEmit(true, true, true, true, address(vault));
        emit Exited(proof.payer, amount, proof.header.number);
        vault.exit(proof);
        checkEqual(proof.payer.balance - before, amount, "exited");
    }

    modifier mature(FeeVault.AccountProof memory proof) {
        uint256 present = block.number;
        uint256 from = uint256(proof.run.postedAt) + CLAIM_DELAY;
        if (present < from) vm.roll(from);
        _;
        vm.roll(present);
    }

    function refusesClaim(FeeVault.AccountProof memory proof, bytes memory reason) internal mature(proof) {
        vm.expectRevert(reason);
        vault.claim(proof);
    }

    function refusesExit(FeeVault.AccountProof memory proof, bytes memory reason) internal {
        vm.expectRevert(reason);
        vault.exit(proof);
    }

    function nothingToPay(uint256 entitled, uint256 paid) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(FeeVault.NothingToPay.selector, entitled, paid);
    }

    // Deployment and deposits

    function testConstructorReadsTheDelay() public view {
        checkEqual(address(vault.inbox()), address(inbox), "inbox");
        checkEqual(vault.withdrawalDelay(), WITHDRAWAL_DELAY, "delay");
        checkEqual(address(vault.registry()), address(inbox), "registry");
        checkEqual(vault.claimDelay(), CLAIM_DELAY, "claim delay");
    }

    /// @dev Rule E-1.
    function testConstructorWantsTimeToLeave() public {
        ICommitteeRegistry registry = ICommitteeRegistry(address(inbox));
        expectBadDelays(WITHDRAWAL_DELAY, CLAIM_DELAY);
        expectBadDelays(WITHDRAWAL_DELAY + 1, 0);
        expectBadDelays(WITHDRAWAL_DELAY + 1, WITHDRAWAL_DELAY - POSTING_DEADLINE);
        inbox.setEpochs(1, WITHDRAWAL_DELAY + 1);
        new FeeVault(inbox, registry, WITHDRAWAL_DELAY - POSTING_DEADLINE - 1);
        vm.expectRevert(abi.encodeWithSelector(FeeVault.ForeignRegistry.selector, address(inbox)));
        new FeeVault(IBlindedInbox(address(1)), registry, CLAIM_DELAY);
    }

    function expectBadDelays(uint32 notice, uint32 claimDelay) internal {
        inbox.setEpochs(1, notice);
        bytes memory reason =
            abi.encodeWithSelector(FeeVault.BadDelays.selector, WITHDRAWAL_DELAY, notice, claimDelay);
        vm.expectRevert(reason);
        new FeeVault(inbox, ICommitteeRegistry(address(inbox)), claimDelay);
    }

    /// @dev The first committee needs no notice, for nobody has anything here before it is known (E-2).
    function testNoDepositBeforeTheFirstCommittee() public {
        inbox.setEpochs(0, WITHDRAWAL_DELAY + 1);
        vault = new FeeVault(inbox, ICommitteeRegistry(address(inbox)), CLAIM_DELAY);
        vm.expectRevert(abi.encodeWithSelector(FeeVault.NoEpoch.selector));
        vault.deposit{ value: 1 ether }(ALICE);
        inbox.setEpochs(1, WITHDRAWAL_DELAY + 1);
        vault.deposit{ value: 1 ether }(ALICE);
    }

    /// @dev A ledger pays out when its header stands for `claimDelay` blocks (E-3).
    function testClaimWaits() public {
        vm.roll(START_BLOCK + 5);
        FeeVault.AccountProof memory proof =
            proofOf(postLedger(ledger(60 ether, 3 ether), START_BLOCK + 1), 60 ether, 3 ether);
        for (uint256 i = 0; i < CLAIM_DELAY; i++) {
            vm.roll(START_BLOCK + 5 + i);
            vm.expectRevert(
                abi.encodeWithSelector(FeeVault.ClaimTooEarly.selector, START_BLOCK + 5 + CLAIM_DELAY)
            );
            vault.claim(proof);
        }
        vm.roll(START_BLOCK + 5 + CLAIM_DELAY);
        vault.claim(proof);
        checkEqual(ALICE.balance, 3 ether, "claimed");
    }

    function testDeposit() public {
        vm.deal(BOB, 3 ether);
        vm.expectEmit(true, true, true, true, address(vault));
        emit Deposited(ALICE, BOB, 2 ether);
        vm.prank(BOB);
        vault.deposit{ value: 2 ether }(ALICE);
        checkEqual(vault.totalDeposited(), 202 ether, "total");
        checkEqual(address(vault).balance, 202 ether, "balance");
    }

    function testFuzzDeposit(address payer, address from, uint128 first, uint128 second) public {
        vm.assume(payer != address(0) && from != address(vault));
        first = uint128(bound(first, 1, (1 << 125) - 1));
        second = uint128(bound(second, 1, (1 << 125) - 1));
        vm.deal(from, uint256(first) + second);
        vm.prank(from);
        vault.deposit{ value: first }(payer);
        vm.expectEmit(true, true, true, true, address(vault));
        emit Deposited(payer, from, second);
        vm.prank(from);
        vault.deposit{ value: second }(payer);
        checkEqual(vault.totalDeposited(), uint256(first) + second + 200 ether, "total");
    }

    function testZeroPayer() public {
        vm.expectRevert(abi.encodeWithSelector(FeeVault.ZeroPayer.selector));
        vault.deposit{ value: 1 }(address(0));
    }

    function testZeroAmount() public {
        vm.expectRevert(abi.encodeWithSelector(FeeVault.ZeroAmount.selector));
        vault.deposit(address(1));
        vm.expectRevert(abi.encodeWithSelector(FeeVault.ZeroAmount.selector));
        vault.requestWithdrawal(0);
    }

    function testTotalTooLarge() public {
        uint256 limit = vault.TOTAL_LIMIT_WEI();
        vm.deal(address(this), limit);
        vault.deposit{ value: limit - 1 - 200 ether }(address(1));
        vm.expectRevert(abi.encodeWithSelector(FeeVault.TotalTooLarge.selector, limit));
        vault.deposit{ value: 1 }(address(1));
        vm.expectRevert(abi.encodeWithSelector(FeeVault.TotalTooLarge.selector, limit + 1));
        vault.deposit{ value: 2 }(address(1));
    }

    function testPlainTransferRefused() public {
        (bool sent,) = address(vault).call{ value: 1 }("");
        check(!sent, "sent");
    }

    // Requests

    function testRequestIsRemembered() public {
        vm.expectEmit(true, true, true, true, address(vault));
        emit WithdrawalRequested(ALICE, 3 ether);
        request(ALICE, 3 ether);
        vm.roll(START_BLOCK + 5);
        request(ALICE, 4 ether);
        (uint128 amount, uint64 first, uint64 last) = vault.pending(ALICE);
        checkEqual(amount, 7 ether, "requests that wait add up");
        checkEqual(first, START_BLOCK, "first");
        checkEqual(last, START_BLOCK + 5, "last");
    }

    function testRequestsStopAtTheLargestAmount() public {
        request(ALICE, type(uint128).max - 1);
        request(ALICE, 2);
        request(ALICE, type(uint128).max);
        (uint128 amount,,) = vault.pending(ALICE);
        checkEqual(amount, type(uint128).max, "amount");
    }

    function testRequestStartsAfreshAfterTheFirstWasProcessed() public {
        request(ALICE, 3 ether);
        vm.roll(START_BLOCK + 2);
        request(ALICE, 4 ether);
        vm.roll(START_BLOCK + 5);
        postLedger(ledger(60 ether, 3 ether), START_BLOCK - 1);
        request(ALICE, 1 ether);
        (uint128 amount,,) = vault.pending(ALICE);
        checkEqual(amount, 8 ether, "an origin below the first processes nothing");
        postLedger(ledger(60 ether, 3 ether), START_BLOCK);
        request(ALICE, 2 ether);
        uint64 first;
        uint64 last;
        (amount, first, last) = vault.pending(ALICE);
        checkEqual(amount, 2 ether, "afresh");
        checkEqual(first, START_BLOCK + 5, "first");
        checkEqual(last, START_BLOCK + 5, "last");
    }

    // Claims

    function testClaimPaysWhatIsWithdrawnOnce() public {
        vm.roll(START_BLOCK + 2);
        Posted memory early = postLedger(ledger(60 ether, 3 ether), START_BLOCK);
        Posted memory late = postLedger(ledger(50 ether, 13 ether), START_BLOCK + 1);
        claimsFor(proofOf(early, 60 ether, 3 ether), 3 ether);
        refusesClaim(proofOf(early, 60 ether, 3 ether), nothingToPay(3 ether, 3 ether));
        claimsFor(proofOf(late, 50 ether, 13 ether), 10 ether);
        refusesClaim(proofOf(early, 60 ether, 3 ether), nothingToPay(3 ether, 13 ether));
        checkEqual(vault.paid(ALICE), 13 ether, "paid");
        checkEqual(vault.totalPaid(), 13 ether, "total");
        checkEqual(address(vault).balance, 187 ether, "balance");
    }

    function testAnyoneMayClaimButThePayerIsPaid() public {
        vm.roll(START_BLOCK + 2);
        Posted memory posted = postLedger(ledger(60 ether, 3 ether), START_BLOCK);
        vm.roll(START_BLOCK + 2 + CLAIM_DELAY);
        vm.prank(BOB);
        vault.claim(proofOf(posted, 60 ether, 3 ether));
        checkEqual(ALICE.balance, 3 ether, "payer");
        checkEqual(BOB.balance, 0, "caller");
    }

    function testClaimNeedsAPostedHeader() public {
        vm.roll(START_BLOCK + 2);
        FeeVault.AccountProof memory good =
            proofOf(postLedger(ledger(60 ether, 3 ether), START_BLOCK), 60 ether, 3 ether);
        bytes memory encoded = abi.encode(good);
        for (uint256 i = 0; i < 4; i++) {
            FeeVault.AccountProof memory bad = abi.decode(encoded, (FeeVault.AccountProof));
            if (i == 0) bad.header.gas ^= 1;
            if (i == 1) bad.run.postedAt ^= 1;
            if (i == 2) bad.run.last += 1;
            if (i == 3) bad.headerProof = new bytes32[](1);
            bytes32 hash = inbox.hashHeader(bad.header);
            refusesClaim(bad, abi.encodeWithSelector(FeeVault.HeaderNotPosted.selector, hash));
        }
        claimsFor(good, 3 ether);
    }

    function testClaimNeedsTheAccountAsItStandsInTheLedger() public {
        vm.roll(START_BLOCK + 2);
        Posted memory posted = postLedger(ledger(60 ether, 3 ether), START_BLOCK);
        FeeVault.AccountProof memory good = proofOf(posted, 60 ether, 3 ether);
        bytes memory reason =
            abi.encodeWithSelector(FeeVault.NotInLedger.selector, posted.header.feeLedgerRoot);
        bytes memory encoded = abi.encode(good);
        for (uint256 i = 0; i < 8; i++) {
            FeeVault.AccountProof memory bad = abi.decode(encoded, (FeeVault.AccountProof));
            if (i == 0) bad.payer = BOB;
            if (i == 1) bad.balance += 1;
            if (i == 2) bad.withdrawn += 1;
            if (i == 3) (bad.balance, bad.withdrawn) = (bad.withdrawn, bad.balance);
            if (i == 4) bad.siblings[0] ^= bytes32(uint256(1));
            if (i == 5) bad.siblings = new bytes32[](bad.siblings.length + 1);
            if (i == 6) bad.siblings = new bytes32[](0);
            if (i == 7) bad.siblings = new bytes32[](257);
            refusesClaim(bad, reason);
        }
        claimsFor(good, 3 ether);
    }

    function testNobodyIsInTheEmptyLedger() public {
        vm.roll(START_BLOCK + 2);
        Posted memory posted = postLedger(new Account[](0), START_BLOCK);
        FeeVault.AccountProof memory proof = proofOf(posted, 60 ether, 3 ether);
        proof.siblings = new bytes32[](0);
        refusesClaim(
            proof, abi.encodeWithSelector(FeeVault.NotInLedger.selector, posted.header.feeLedgerRoot)
        );
    }

    /// @dev The account's leaf and the ledger's root, written down a second time.
    function testLeafAndRootEncoding() public {
        vm.roll(START_BLOCK + 2);
        bytes32 key = keccak256(bytes.concat(hex"00", bytes20(ALICE)));
        bytes memory data = bytes.concat(hex"00", key, bytes16(uint128(5)), bytes16(uint128(7)));
        checkEqual(data.length, 65, "length");
        bytes32 root = keccak256(data);
        BatchHeader[] memory headers = new BatchHeader[](1);
        headers[0] = nextHeader(0, inbox.headHash(), START_BLOCK, root);
        Posted memory posted = postHeaders(headers, false)[0];
        Account[] memory accounts = new Account[](1);
        accounts[0] = Account(ALICE, 5, 7);
        claimsFor(accountProof(posted, accounts, 0), 7);
    }

    function testFuzzClaimFromAnyPlace(uint256 count, uint256 index, uint128 withdrawn, uint256 headers)
        public
    {
        count = bound(count, 1, 40);
        index = bound(index, 0, count - 1);
        withdrawn = uint128(bound(withdrawn, 1, 200 ether));
        headers = bound(headers, 1, 6);
        Account[] memory accounts = manyAccounts(count);
        accounts[index].withdrawn = withdrawn;
        vm.roll(START_BLOCK + 1);
        BatchHeader[] memory run = new BatchHeader[](headers);
        bytes32 parent = inbox.headHash();
        for (uint64 i = 0; i < headers; i++) {
            run[i] = nextHeader(i, parent, START_BLOCK, ledgerRoot(accounts));
            parent = inbox.hashHeader(run[i]);
        }
        Posted memory posted = postHeaders(run, false)[index % headers];
        claimsFor(accountProof(posted, accounts, index), withdrawn);
    }

    // Exits

    function testExitPaysRequestedAndWithdrawn() public {
        vm.roll(START_BLOCK + 1);
        Posted memory posted = postLedger(ledger(60 ether, 3 ether), START_BLOCK);
        request(ALICE, 10 ether);
        vm.roll(START_BLOCK + 1 + WITHDRAWAL_DELAY);
        exitsFor(proofOf(posted, 60 ether, 3 ether), 13 ether);
        refusesExit(proofOf(posted, 60 ether, 3 ether), nothingToPay(13 ether, 13 ether));
        refusesClaim(proofOf(posted, 60 ether, 3 ether), nothingToPay(3 ether, 13 ether));
    }

    function testExitPaysNoMoreThanTheBalance() public {
        vm.roll(START_BLOCK + 1);
        Posted memory posted = postLedger(ledger(60 ether, 3 ether), START_BLOCK);
        request(ALICE, type(uint128).max);
        vm.roll(START_BLOCK + 1 + WITHDRAWAL_DELAY);
        claimsFor(proofOf(posted, 60 ether, 3 ether), 3 ether);
        exitsFor(proofOf(posted, 60 ether, 3 ether), 60 ether);
    }

    function testExitNeedsARequest() public {
        vm.roll(START_BLOCK + 1);
        Posted memory posted = postLedger(ledger(60 ether, 3 ether), START_BLOCK);
        vm.roll(START_BLOCK + 1 + WITHDRAWAL_DELAY);
        refusesExit(
            proofOf(posted, 60 ether, 3 ether), abi.encodeWithSelector(FeeVault.NoRequest.selector, ALICE)
        );
    }

    function testExitWaitsForTheDelayAfterTheLastRequest() public {
        vm.roll(START_BLOCK + 1);
        FeeVault.AccountProof memory proof =
            proofOf(postLedger(ledger(60 ether, 3 ether), START_BLOCK), 60 ether, 3 ether);
        request(ALICE, 1 ether);
        vm.roll(START_BLOCK + 8);
        request(ALICE, 1 ether);
        uint256 exitBlock = START_BLOCK + 8 + WITHDRAWAL_DELAY;
        vm.roll(exitBlock - 1);
        refusesExit(proof, abi.encodeWithSelector(FeeVault.DelayNotOver.selector, exitBlock));
        vm.roll(exitBlock);
        exitsFor(proof, 5 ether);
    }

    function testExitOnlyFromTheHead() public {
        vm.roll(START_BLOCK + 1);
        Posted memory old = postLedger(ledger(60 ether, 0), START_BLOCK - 1);
        request(ALICE, 30 ether);
        Posted memory present = postLedger(ledger(20 ether, 0), START_BLOCK);
        vm.roll(START_BLOCK + 1 + WITHDRAWAL_DELAY);
        refusesExit(
            proofOf(old, 60 ether, 0),
            abi.encodeWithSelector(
                FeeVault.NotHead.selector, inbox.hashHeader(old.header), inbox.hashHeader(present.header)
            )
        );
        exitsFor(proofOf(present, 20 ether, 0), 20 ether);
    }

    function testExitFromAHeaderMadeByL1() public {
        vm.roll(START_BLOCK + 1);
        Posted memory certified = postLedger(ledger(60 ether, 0), START_BLOCK);
        request(ALICE, 30 ether);
        vm.roll(START_BLOCK + 1 + WITHDRAWAL_DELAY);
        BatchHeader[] memory headers = new BatchHeader[](1);
        headers[0] = nextHeader(1, inbox.headHash(), START_BLOCK, certified.header.feeLedgerRoot);
        Posted memory made = postHeaders(headers, true)[0];
        exitsFor(proofOf(made, 60 ether, 0), 30 ether);
    }

    function testExitRefusedOnceEverythingIsProcessed() public {
        vm.roll(START_BLOCK + 1);
        request(ALICE, 10 ether);
        vm.roll(START_BLOCK + 2);
        Posted memory posted = postLedger(ledger(50 ether, 10 ether), START_BLOCK + 1);
        vm.roll(START_BLOCK + 1 + WITHDRAWAL_DELAY);
        refusesExit(
            proofOf(posted, 50 ether, 10 ether),
            abi.encodeWithSelector(FeeVault.AlreadyProcessed.selector, START_BLOCK + 1, START_BLOCK + 1)
        );
        claimsFor(proofOf(posted, 50 ether, 10 ether), 10 ether);
    }

    /// @dev The way out when the rollup stopped between two requests: claim, request anew, wait, exit; and when it
    /// goes on after all, it has processed more than was paid.
    function testExitAfterTheRollupStoppedBetweenRequests() public {
        vm.roll(START_BLOCK + 1);
        request(ALICE, 10 ether);
        vm.roll(START_BLOCK + 3);
        request(ALICE, 20 ether);
        FeeVault.AccountProof memory proof =
            proofOf(postLedger(ledger(50 ether, 10 ether), START_BLOCK + 1), 50 ether, 10 ether);
        vm.roll(START_BLOCK + 3 + WITHDRAWAL_DELAY);
        refusesExit(
            proof,
            abi.encodeWithSelector(
                FeeVault.PartlyProcessed.selector, START_BLOCK + 1, START_BLOCK + 1, START_BLOCK + 3
            )
        );
        claimsFor(proof, 10 ether);
        request(ALICE, 25 ether);
        refusesExit(
            proof,
            abi.encodeWithSelector(FeeVault.DelayNotOver.selector, START_BLOCK + 3 + 2 * WITHDRAWAL_DELAY)
        );
        vm.roll(START_BLOCK + 3 + 2 * WITHDRAWAL_DELAY);
        exitsFor(proof, 25 ether);
        checkEqual(vault.paid(ALICE), 35 ether, "paid");

        // The rollup goes on: 20 and then 25 of the 50 ether leave the balance.
        uint64 origin = START_BLOCK + 2 + 2 * WITHDRAWAL_DELAY;
        proof = proofOf(postLedger(ledger(5 ether, 55 ether), origin), 5 ether, 55 ether);
        claimsFor(proof, 20 ether);
    }

    function testRequestAfterAnExitAddsToTheOthers() public {
        vm.roll(START_BLOCK + 1);
        FeeVault.AccountProof memory proof =
            proofOf(postLedger(ledger(50 ether, 0), START_BLOCK), 50 ether, 0);
        request(ALICE, 10 ether);
        vm.roll(START_BLOCK + 1 + WITHDRAWAL_DELAY);
        exitsFor(proof, 10 ether);
        request(ALICE, 15 ether);
        vm.roll(START_BLOCK + 1 + 2 * WITHDRAWAL_DELAY);
        exitsFor(proof, 15 ether);
        proof = proofOf(
            postLedger(ledger(25 ether, 25 ether), START_BLOCK + 2 * WITHDRAWAL_DELAY), 25 ether, 25 ether
        );
        refusesClaim(proof, nothingToPay(25 ether, 25 ether));
    }

    // Payers that are contracts

    function testPayerThatRefusesEtherKeepsItsClaim() public {
        ContractPayer payer = new ContractPayer(vault);
        FeeVault.AccountProof memory proof = contractProof(payer);
        refusesClaim(proof, abi.encodeWithSelector(FeeVault.TransferFailed.selector, address(payer)));
        checkEqual(vault.paid(address(payer)), 0, "paid");
        payer.accept("");
        claimsFor(proof, 3 ether);
    }

    function testPayerIsNotPaidTwiceByReentering() public {
        ContractPayer payer = new ContractPayer(vault);
        FeeVault.AccountProof memory proof = contractProof(payer);
        payer.request(5 ether);
        vm.roll(START_BLOCK + 2 + WITHDRAWAL_DELAY);
        payer.accept(abi.encodeCall(FeeVault.exit, (proof)));
        exitsFor(proof, 8 ether);
        payer.accept(abi.encodeCall(FeeVault.claim, (proof)));
        refusesClaim(proof, nothingToPay(3 ether, 8 ether));
        checkEqual(payer.reentered(), 0, "reentered");
        checkEqual(vault.totalPaid(), 8 ether, "total");
    }

    function contractProof(ContractPayer payer) internal returns (FeeVault.AccountProof memory) {
        vm.roll(START_BLOCK + 2);
        Account[] memory accounts = ledger(60 ether, 3 ether);
        accounts[1].payer = address(payer);
        return accountProof(postLedger(accounts, START_BLOCK), accounts, 1);
    }
}

/// @dev What the calls cost a payer among 1,000. What must stand in storage before is done in `setUp`, so that writes
/// are charged as in a transaction of their own; 21,000 and the calldata come on top.
contract FeeVaultGasTest is FeeRollup {
    uint256 internal constant COUNT = 1_000;

    FeeVault.AccountProof internal known;
    FeeVault.AccountProof internal fresh;

    function setUp() public {
        deployContracts();
        vm.deal(address(this), 1_000 ether);
        vault.deposit{ value: 100 ether }(address(1));
        Account[] memory accounts = manyAccounts(COUNT);
        // Paths of common length.
        for (uint256 i = 714; i < 716; i++) {
            accounts[i].withdrawn = 1 ether;
            vm.deal(accounts[i].payer, 1);
            vm.prank(accounts[i].payer);
            vault.requestWithdrawal(1 ether);
        }
        vm.roll(START_BLOCK + 1);
        FeeVault.AccountProof memory first =
            accountProof(postLedger(accounts, START_BLOCK - 1), accounts, 714);
        vm.roll(START_BLOCK + 1 + CLAIM_DELAY);
        vault.claim(first);
        accounts[714].withdrawn = 2 ether;
        Posted memory posted = postLedger(accounts, START_BLOCK - 1);
        known = accountProof(posted, accounts, 714);
        fresh = accountProof(posted, accounts, 715);
        checkEqual(known.siblings.length, 11, "depth");
        checkEqual(fresh.siblings.length, 11, "depth");
        vm.roll(START_BLOCK + WITHDRAWAL_DELAY);
    }

    /// @dev As in a transaction of its own: no slot was touched before.
    function cold() internal {
        vm.cool(address(vault));
        vm.cool(address(inbox));
    }

    function testGasDeposit() public {
        cold();
        vault.deposit{ value: 2 ether }(address(2));
        vm.snapshotGasLastCall("FeeVault.deposit");
    }

    function testGasRequestWithdrawal() public {
        cold();
        vm.prank(address(2));
        vault.requestWithdrawal(1 ether);
        vm.snapshotGasLastCall("FeeVault.requestWithdrawal, first");
    }

    function testGasRequestWithdrawalAgain() public {
        address payer = known.payer;
        cold();
        vm.prank(payer);
        vault.requestWithdrawal(1 ether);
        vm.snapshotGasLastCall("FeeVault.requestWithdrawal, further");
    }

    function testGasClaim() public {
        FeeVault.AccountProof memory proof = fresh;
        cold();
        vault.claim(proof);
        vm.snapshotGasLastCall("FeeVault.claim, 1,000 accounts, first");
    }

    function testGasClaimAgain() public {
        FeeVault.AccountProof memory proof = known;
        cold();
        vault.claim(proof);
        vm.snapshotGasLastCall("FeeVault.claim, 1,000 accounts, further");
    }

    function testGasExit() public {
        FeeVault.AccountProof memory proof = fresh;
        cold();
        vault.exit(proof);
        vm.snapshotGasLastCall("FeeVault.exit, 1,000 accounts");
    }
}
