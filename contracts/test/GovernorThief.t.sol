// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../src/BlindedInbox.sol";
import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { FeeVault } from "../src/FeeVault.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Bls12381 } from "../src/libraries/Bls12381.sol";
import { FeeLedger } from "../src/libraries/FeeLedger.sol";
import { BlsSigner } from "./helpers/BlsSigner.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev Somebody has the governor's key, and nothing else.
contract GovernorThiefTest is Deployment {
    address internal constant THIEF = address(0x741ef);
    address internal constant ALICE = address(0xa11ce);
    uint256 internal constant SECRET = 0xbad;

    FeeVault internal vault;

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        registerEpoch(10, 4, 3);
        vault = new FeeVault(inbox, registry, CLAIM_DELAY);
        vm.deal(address(this), 500 ether);
        vault.deposit{ value: 500 ether }(ALICE);
    }

    /// @dev A committee of one, whose key the thief has, from the next free number on.
    function registerThief(uint64 lastNumber) internal {
        CommitteeRegistry.Member[] memory members = new CommitteeRegistry.Member[](1);
        members[0] = CommitteeRegistry.Member({
            key: BlsSigner.key(SECRET), possession: BlsSigner.possession(SECRET)
        });
        vm.prank(GOVERNOR);
        registry.registerEpoch(parameters(lastNumber, 1), members);
    }

    function thiefCertificate(BatchHeader memory header)
        internal
        view
        returns (BlindedInbox.Certificate memory)
    {
        bytes32 digest = registry.acknowledgementDigest(header.epoch, header.number, inbox.hashHeader(header));
        return BlindedInbox.Certificate({
            signers: 1, signature: BlsSigner.sign(SECRET, Bls12381.SIGNATURE_TAG, abi.encodePacked(digest))
        });
    }

    /// @dev A header that says that an account has withdrawn so much, and the proof of it.
    function ledgerHeader(address payer, uint128 withdrawn, uint64 epoch)
        internal
        view
        returns (BatchHeader[] memory headers, FeeVault.AccountProof memory proof)
    {
        headers = run(1);
        headers[0].feeLedgerRoot = FeeLedger.accountLeaf(FeeLedger.accountKey(payer), 0, withdrawn);
        headers[0].epoch = epoch;
        relink(headers);
        proof = FeeVault.AccountProof({
            payer: payer,
            balance: 0,
            withdrawn: withdrawn,
            siblings: new bytes32[](0),
            header: headers[0],
            run: runReference(headers),
            headerProof: new bytes32[](0)
        });
    }

    /// @dev The whole vault in one block, once: a header of the thief's own committee that nobody's sequencer signed.
    /// Now that header counts when the notice is over, and pays out later still.
    function testANewCommitteeCannotEmptyTheVaultAtOnce() public {
        postRun(run(10)); // the honest committee's last number
        uint256 registered = block.number;
        registerThief(1_000);
        (BatchHeader[] memory headers,) = ledgerHeader(THIEF, 500 ether, 2);
        BlindedInbox.Certificate memory c = thiefCertificate(headers[0]);
        uint64 countsFrom = uint64(registered) + EPOCH_NOTICE;
        vm.prank(THIEF, THIEF);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.EpochNotInForce.selector, 2, countsFrom));
        inbox.post(headers, "", c);

        pass(countsFrom - block.number);
        FeeVault.AccountProof memory proof;
        (headers, proof) = ledgerHeader(THIEF, 500 ether, 2);
        post(headers, thiefCertificate(headers[0]));
        vm.expectRevert(abi.encodeWithSelector(FeeVault.ClaimTooEarly.selector, block.number + CLAIM_DELAY));
        vault.claim(proof);
        check(block.number > registered + WITHDRAWAL_DELAY, "longer than leaving takes");
    }

    /// @dev Whoever asks for its ether within the first 14,400 blocks has it before the thief's first header.
    function testEveryUserCanLeaveFirst(uint256 noticed) public {
        noticed = bound(noticed, 0, EPOCH_NOTICE - WITHDRAWAL_DELAY - 1);
        postRun(run(9));
        uint256 registered = block.number;
        registerThief(1_000);
        pass(noticed);
        vm.prank(ALICE);
        vault.requestWithdrawal(type(uint128).max);
        // The rollup goes on until the last moment before an exit, and moves her balance then.
        pass(POSTING_DEADLINE);
        (BatchHeader[] memory headers, FeeVault.AccountProof memory proof) = ledgerHeader(ALICE, 500 ether, 1);
        postRun(headers); // number 10
        pass(CLAIM_DELAY);
        vault.claim(proof);
        checkEqual(ALICE.balance, 500 ether, "has left");
        check(block.number < registered + EPOCH_NOTICE, "before the thief's first header");
        checkEqual(address(vault).balance, 0, "nothing to steal");
    }

    /// @dev To shorten the epoch in office gains the thief nothing: its own needs its notice all the same, and what is
    /// certified but not posted is never cut off.
    function testAnEarlyEndNeedsAsMuchNotice() public {
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        postRun(run(9));
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSignature("ChangeTooSoon(uint64,uint256)", 10, 9 + SWITCH_LEAD));
        registry.endEpoch(1, 10);
        vm.prank(GOVERNOR);
        registry.endEpoch(1, 9 + SWITCH_LEAD);
        registerThief(100_000);
        (uint64 first,) = registry.numbersOf(2);
        checkEqual(first, 10 + SWITCH_LEAD, "behind the new end");
        checkEqual(registry.getEpoch(2).countsFrom, block.number + EPOCH_NOTICE, "notice");
    }

    /// forge-config: default.isolate = true
    /// @dev Epochs without numbers are moved along when the one before them ends. However many somebody registers and
    /// takes back, L1's last header of the epoch in office fits one transaction; with 2,500 of them it did not, and the
    /// chain could not go on (E-10).
    function testTakenBackEpochsDoNotKeepAnEndFromComing() public {
        deployContracts();
        registerEpoch(EPOCH_LAST, 4, 3);
        BatchHeader[] memory head = run(1);
        postRun(head);
        vm.startPrank(GOVERNOR);
        CommitteeRegistry.Member[] memory members = new CommitteeRegistry.Member[](1);
        members[0] = CommitteeRegistry.Member({
            key: BlsSigner.key(SECRET), possession: BlsSigner.possession(SECRET)
        });
        CommitteeRegistry.EpochParameters memory given = parameters(EPOCH_LAST + 1, 1);
        for (uint64 epoch = 2; epoch <= 257; epoch++) {
            registry.registerEpoch(given, members);
            registry.endEpoch(epoch, EPOCH_LAST);
        }
        vm.expectRevert(abi.encodeWithSignature("TooManyEpochs(uint64)", 256));
        registry.registerEpoch(given, members);
        registry.announceEnd();
        vm.stopPrank();
        pass(EPOCH_NOTICE + 1);
        inbox.postL1Header(head[0]);
        uint256 gas = vm.snapshotGasLastCall("BlindedInbox.postL1Header, 256 epochs without a number");
        check(gas < 4_000_000, "fits a transaction");
        checkEqual(registry.servingEpoch(3), 257, "none has a number");
        registerThief(EPOCH_LAST); // they are in nobody's way now
    }

    /// @dev Silence cannot be claimed of a committee that L1 hears of.
    function testALiveCommitteeIsNotSilent() public {
        postRun(run(9));
        uint64 last = uint64(block.number);
        pass(POSTING_DEADLINE);
        vm.prank(GOVERNOR);
        vm.expectRevert(
            abi.encodeWithSignature("NotSilent(uint64,uint256)", last, uint256(last) + POSTING_DEADLINE)
        );
        registry.announceSilence();
        vm.prank(THIEF);
        vm.expectRevert(abi.encodeWithSignature("NotGovernor(address)", THIEF));
        registry.announceSilence();
    }
}
