// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FeeVault } from "../src/FeeVault.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { FeeRollup } from "./helpers/FeeRollup.sol";

/// @dev A rollup in small: four payers, of which the first is the sequencer, whose ledger follows the rules of
/// docs/protocol.md from the vault's events. It drives vault and inbox at random, calculates beforehand what each claim
/// and exit must do, and fails when the vault does anything else.
contract FeeRollupModel is FeeRollup {
    uint256 public constant PAYERS = 4;

    struct Event {
        uint64 l1Block;
        uint8 payer;
        bool isDeposit;
        uint128 amount;
    }

    struct Request {
        uint64 l1Block;
        uint64 origin;
        uint128 amount;
    }

    /// @dev Outcomes, so that a test can tell that every kind was met.
    enum Outcome {
        Claimed,
        ClaimedAfterExit,
        NothingToClaim,
        ClaimTooEarly,
        Exited,
        ExitedAgain,
        NothingToExit,
        NoRequest,
        DelayNotOver,
        AlreadyProcessed,
        PartlyProcessed,
        NotHead,
        MadeByL1,
        Resumed
    }

    uint64 private present = START_BLOCK;
    uint256 public deposited;
    Account[] private ledger;
    Event[] private events;
    uint256 private processed;
    mapping(uint256 payer => Request[] requests) private requests;
    mapping(uint256 payer => uint256 amount) public received;
    mapping(uint256 payer => bool) private left;
    Posted[] private history;
    mapping(uint256 position => Account[] accounts) private ledgers;
    mapping(Outcome outcome => uint256 count) public seen;

    constructor() {
        deployContracts();
        for (uint160 i = 0; i < PAYERS; i++) {
            ledger.push(Account(address(0x1000 + i), 0, 0));
        }
    }

    function theVault() external view returns (FeeVault) {
        return vault;
    }

    function payerAt(uint256 payer) public pure returns (address) {
        return address(uint160(0x1000 + payer));
    }

    // What happens

    function passTime(uint256 blocks) external {
        present += uint64(bound(blocks, 1, 15));
        vm.roll(present);
    }

    function deposit(uint256 payer, uint256 amount) external {
        payer = bound(payer, 0, PAYERS - 1);
        amount = bound(amount, 1, 100);
        vm.roll(present);
        vm.deal(address(this), amount);
        vault.deposit{ value: amount }(payerAt(payer));
        deposited += amount;
        events.push(Event(present, uint8(payer), true, uint128(amount)));
    }

    function request(uint256 payer, uint256 amount) external {
        payer = bound(payer, 0, PAYERS - 1);
        uint128 wei_ = uint128(amount % 8 == 0 ? type(uint128).max : bound(amount, 1, 60));
        vm.roll(present);
        vm.prank(payerAt(payer));
        vault.requestWithdrawal(wei_);
        (,, uint64 origin,) = inbox.head();
        requests[payer].push(Request(present, origin, wei_));
        events.push(Event(present, uint8(payer), false, wei_));
    }

    /// @dev A certified run: origins advance as far as they like within the posting deadline, and in every batch somebody
    /// pays fees out of what is left.
    function post(uint256 count, uint256 advance, uint256 payer, uint256 fee) external {
        vm.roll(present);
        count = bound(count, 1, 3);
        (uint64 number,, uint64 origin,) = inbox.head();
        bytes32 parent = inbox.headHash();
        uint64 oldest = present - POSTING_DEADLINE;
        if (origin < oldest) {
            origin = oldest;
            seen[Outcome.Resumed]++;
        }
        BatchHeader[] memory headers = new BatchHeader[](count);
        for (uint64 i = 0; i < count; i++) {
            origin += uint64(bound(advance >> (8 * i), 0, present - 1 - origin));
            process(origin);
            spend(bound(payer ^ i, 0, PAYERS - 1), fee);
            headers[i] = nextHeader(number + i, parent, origin, ledgerRoot(accountsWithLeaf(ledger)));
            parent = inbox.hashHeader(headers[i]);
            remember(history.length + i);
        }
        Posted[] memory posted = postHeaders(headers, false);
        for (uint256 i = 0; i < count; i++) {
            history.push(posted[i]);
        }
    }

    /// @dev After the committee's silence, a header that L1 makes: the ledger stays.
    function postByL1() external {
        vm.roll(present);
        if (uint256(inbox.lastCertifiedAt()) + POSTING_DEADLINE > present) return;
        (uint64 number,, uint64 origin,) = inbox.head();
        BatchHeader[] memory headers = new BatchHeader[](1);
        headers[0] = nextHeader(number, inbox.headHash(), origin, ledgerRoot(accountsWithLeaf(ledger)));
        remember(history.length);
        history.push(postHeaders(headers, true)[0]);
        seen[Outcome.MadeByL1]++;
    }

    function claim(uint256 payer, uint256 position) external {
        vm.roll(present);
        if (history.length == 0) return;
        position = history.length - 1 - bound(position, 0, history.length < 4 ? history.length - 1 : 3);
        (bool found, FeeVault.AccountProof memory proof) = proofAt(position, payer);
        if (!found) return;
        payer = bound(payer, 0, PAYERS - 1);
        uint256 from = uint256(proof.run.postedAt) + CLAIM_DELAY;
        if (present < from) {
            vm.expectRevert(abi.encodeWithSelector(FeeVault.ClaimTooEarly.selector, from));
            vault.claim(proof);
            seen[Outcome.ClaimTooEarly]++;
            return;
        }
        bool pays = proof.withdrawn > received[payer];
        if (!pays) expectNothing(proof.withdrawn, received[payer]);
        vault.claim(proof);
        if (pays) received[payer] = proof.withdrawn;
        seen[pays ? (left[payer] ? Outcome.ClaimedAfterExit : Outcome.Claimed) : Outcome.NothingToClaim]++;
        checkEqual(payerAt(payer).balance, received[payer], "claimed");
    }

    function exit(uint256 payer, uint256 older) external {
        vm.roll(present);
        if (history.length == 0) return;
        uint256 position = history.length - 1;
        if (older % 8 == 0 && position != 0) position--;
        (bool found, FeeVault.AccountProof memory proof) = proofAt(position, payer);
        if (!found) return;
        payer = bound(payer, 0, PAYERS - 1);
        (Outcome outcome, bytes memory refusal, uint256 entitled) = exitOutcome(payer, proof);
        if (refusal.length != 0) vm.expectRevert(refusal);
        vault.exit(proof);
        if (refusal.length == 0) {
            received[payer] = entitled;
            left[payer] = true;
        }
        seen[outcome]++;
        checkEqual(payerAt(payer).balance, received[payer], "exited");
    }

    // What must come of it

    function exitOutcome(uint256 payer, FeeVault.AccountProof memory proof)
        private
        view
        returns (Outcome, bytes memory refusal, uint256 entitled)
    {
        Request[] storage all = requests[payer];
        if (all.length == 0) {
            return (Outcome.NoRequest, abi.encodeWithSelector(FeeVault.NoRequest.selector, payerAt(payer)), 0);
        }
        uint256 start = 0;
        uint256 sum = all[0].amount;
        for (uint256 i = 1; i < all.length; i++) {
            if (all[i].origin >= all[start].l1Block) {
                start = i;
                sum = 0;
            }
            sum += all[i].amount;
        }
        uint64 first = all[start].l1Block;
        uint64 last = all[all.length - 1].l1Block;
        uint64 origin = proof.header.l1OriginNumber;
        if (present - last < WITHDRAWAL_DELAY) {
            refusal = abi.encodeWithSelector(FeeVault.DelayNotOver.selector, last + WITHDRAWAL_DELAY);
            return (Outcome.DelayNotOver, refusal, 0);
        }
        bytes32 given = inbox.hashHeader(proof.header);
        if (given != inbox.headHash()) {
            refusal = abi.encodeWithSelector(FeeVault.NotHead.selector, given, inbox.headHash());
            return (Outcome.NotHead, refusal, 0);
        }
        if (last <= origin) {
            refusal = abi.encodeWithSelector(FeeVault.AlreadyProcessed.selector, origin, last);
            return (Outcome.AlreadyProcessed, refusal, 0);
        }
        if (first <= origin) {
            refusal = abi.encodeWithSelector(FeeVault.PartlyProcessed.selector, origin, first, last);
            return (Outcome.PartlyProcessed, refusal, 0);
        }
        entitled = uint256(proof.withdrawn) + (sum < proof.balance ? sum : proof.balance);
        if (entitled <= received[payer]) {
            refusal = abi.encodeWithSelector(FeeVault.NothingToPay.selector, entitled, received[payer]);
            return (Outcome.NothingToExit, refusal, 0);
        }
        return (left[payer] ? Outcome.ExitedAgain : Outcome.Exited, "", entitled);
    }

    /// @dev What a payer may ever have been paid now: what the ledger moved, request by request, and what it will move
    /// when it goes on from the last posted header.
    function entitlement(uint256 payer) external view returns (uint256) {
        uint256 waiting = 0;
        for (uint256 i = processed; i < events.length; i++) {
            if (!events[i].isDeposit && events[i].payer == payer) waiting += events[i].amount;
        }
        Account storage account = ledger[payer];
        return uint256(account.withdrawn) + (waiting < account.balance ? waiting : account.balance);
    }

    /// @dev All that the ledger and the deposits it has not seen promise.
    function promised() external view returns (uint256 sum) {
        for (uint256 i = 0; i < PAYERS; i++) {
            sum += uint256(ledger[i].balance) + ledger[i].withdrawn;
        }
        for (uint256 i = processed; i < events.length; i++) {
            if (events[i].isDeposit) sum += events[i].amount;
        }
    }

    // The ledger

    function process(uint64 origin) private {
        while (processed < events.length && events[processed].l1Block <= origin) {
            Event memory next = events[processed++];
            Account storage account = ledger[next.payer];
            if (next.isDeposit) {
                account.balance += next.amount;
            } else {
                uint128 moved = next.amount < account.balance ? next.amount : account.balance;
                account.balance -= moved;
                account.withdrawn += moved;
            }
        }
    }

    function spend(uint256 payer, uint256 fee) private {
        uint128 paid = uint128(bound(fee, 0, ledger[payer].balance));
        ledger[payer].balance -= paid;
        ledger[0].balance += paid;
    }

    function remember(uint256 position) private {
        for (uint256 i = 0; i < PAYERS; i++) {
            ledgers[position].push(ledger[i]);
        }
    }

    /// @dev Accounts with nothing have no leaf.
    function accountsWithLeaf(Account[] memory all) private pure returns (Account[] memory accounts) {
        accounts = new Account[](all.length);
        uint256 count = 0;
        for (uint256 i = 0; i < all.length; i++) {
            if (all[i].balance != 0 || all[i].withdrawn != 0) accounts[count++] = all[i];
        }
        assembly {
            mstore(accounts, count)
        }
    }

    function proofAt(uint256 position, uint256 payer)
        private
        view
        returns (bool found, FeeVault.AccountProof memory proof)
    {
        Account[] memory accounts = accountsWithLeaf(ledgers[position]);
        for (uint256 i = 0; i < accounts.length; i++) {
            if (accounts[i].payer == payerAt(bound(payer, 0, PAYERS - 1))) {
                return (true, accountProof(history[position], accounts, i));
            }
        }
    }

    function expectNothing(uint256 entitled, uint256 paid) private {
        vm.expectRevert(abi.encodeWithSelector(FeeVault.NothingToPay.selector, entitled, paid));
    }
}

contract FeeVaultInvariantsTest is FeeRollup {
    FeeRollupModel internal model;

    function setUp() public {
        model = new FeeRollupModel();
        vault = model.theVault();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(model);
    }

    function invariantBalanceIsDepositedLessPaid() public view {
        checkEqual(vault.totalDeposited(), model.deposited(), "deposited");
        checkEqual(address(vault).balance, vault.totalDeposited() - vault.totalPaid(), "balance");
    }

    function invariantNobodyIsPaidMoreThanEntitled() public view {
        uint256 sum = 0;
        for (uint256 i = 0; i < model.PAYERS(); i++) {
            uint256 paid = vault.paid(model.payerAt(i));
            checkEqual(paid, model.received(i), "paid is what was received");
            check(paid <= model.entitlement(i), "paid more than entitled");
            sum += paid;
        }
        checkEqual(vault.totalPaid(), sum, "total");
    }

    function invariantVaultCanPayAllThatTheLedgerPromises() public view {
        checkEqual(model.promised(), vault.totalDeposited(), "the ledger conserves");
    }

    /// @dev The same model driven long enough to meet every outcome; each is counted.
    function testModelMeetsEveryOutcome() public {
        for (uint256 i = 0; i < 2_400; i++) {
            uint256 random = uint256(keccak256(abi.encode("outcomes", i)));
            uint256 what = random % 16;
            uint256 payer = random >> 16;
            // Half the time the rollup stands still, so that exits come about.
            bool silent = (i / 60) % 2 == 1;
            if (what < 2) model.passTime(random >> 32);
            else if (what < 4) model.deposit(payer, random >> 32);
            else if (what < (silent ? 5 : 8)) model.request(payer, random >> 32);
            else if (what < 8) model.passTime(random >> 32);
            else if (what < 10 && silent) model.postByL1();
            else if (what < 10) model.post(random >> 32, random >> 40, payer, random >> 72);
            else if (what < 12) model.claim(payer, random >> 32);
            else model.exit(payer, random >> 32);
            if (i % 8 != 0) continue;
            invariantBalanceIsDepositedLessPaid();
            invariantNobodyIsPaidMoreThanEntitled();
            invariantVaultCanPayAllThatTheLedgerPromises();
        }
        for (uint8 outcome = 0; outcome <= uint8(FeeRollupModel.Outcome.Resumed); outcome++) {
            check(model.seen(FeeRollupModel.Outcome(outcome)) > 2, vm.toString(outcome));
        }
    }

    function testFuzzModel(uint256 seed) public {
        for (uint256 i = 0; i < 60; i++) {
            uint256 random = uint256(keccak256(abi.encode(seed, i)));
            uint256 what = random % 12;
            uint256 payer = random >> 16;
            if (what < 3) model.passTime(random >> 32);
            else if (what < 5) model.deposit(payer, random >> 32);
            else if (what < 7) model.request(payer, random >> 32);
            else if (what < 8) model.post(random >> 32, random >> 40, payer, random >> 72);
            else if (what < 9) model.postByL1();
            else if (what < 10) model.claim(payer, random >> 32);
            else model.exit(payer, random >> 32);
        }
        invariantBalanceIsDepositedLessPaid();
        invariantNobodyIsPaidMoreThanEntitled();
        invariantVaultCanPayAllThatTheLedgerPromises();
    }
}
