// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox, ICommitteeRegistry } from "../src/BlindedInbox.sol";
import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Domain } from "../src/libraries/Domain.sol";
import { MerkleTree } from "../src/libraries/MerkleTree.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev Posts from inside a contract.
contract Middleman {
    function post(BlindedInbox inbox, BatchHeader[] calldata headers, BlindedInbox.Certificate calldata c)
        external
    {
        inbox.post(headers, "", c);
    }
}

/// @dev Refuses ether.
contract Unpayable {
    function claim(BlindedInbox inbox) external {
        inbox.claimReward();
    }
}

contract BlindedInboxTest is Deployment {
    uint64 internal constant THREE_OF_FOUR = 0x7;
    address internal constant REPORTER = address(0x4e904);

    address internal sequencer;

    event Posted(uint64 indexed firstNumber, uint64 indexed lastNumber, bytes32 headHash, bytes32 headerRoot);
    event DataPosted(uint64 indexed firstNumber, address indexed poster);
    event BondDeposited(address indexed from, uint256 amount, uint256 bond);
    event Equivocation(
        uint64 indexed number,
        address indexed reporter,
        bytes32 firstHash,
        bytes32 secondHash,
        uint256 burnt,
        uint256 reward
    );

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        sequencer = vm.addr(SEQUENCER_KEY);
        registerEpoch(EPOCH_LAST, 4, 3);
    }

    // Deployment

    function testConstructor() public {
        checkEqual(inbox.sequencer(), sequencer, "sequencer");
        checkEqual(inbox.domainSeparator(), Domain.separator(block.chainid, address(inbox)), "domain");
        checkEqual(inbox.headHash(), Domain.genesisHash(inbox.domainSeparator()), "genesis");
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.ForeignRegistry.selector, address(inbox)));
        new BlindedInbox(ICommitteeRegistry(address(registry)), sequencer);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.ZeroSequencer.selector));
        new BlindedInbox(ICommitteeRegistry(address(registry)), address(0));
    }

    // Posting

    function testPostRuns() public {
        BatchHeader[] memory headers = run(1);
        bytes32 hash = inbox.hashHeader(headers[0]);
        BlindedInbox.Certificate memory c = certificate(headers[0], THREE_OF_FOUR);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Posted(1, 1, hash, MerkleTree.leaf(hash));
        vm.prank(POSTER, POSTER);
        inbox.post(headers, "", c);
        vm.snapshotGasLastCall("BlindedInbox.post, first run, 1 header");
        checkEqual(inbox.headHash(), hash, "head hash");

        headers = run(1);
        post(headers, certificate(headers[0], THREE_OF_FOUR));
        uint256 one = vm.snapshotGasLastCall("BlindedInbox.post, 1 header");
        headers = run(33);
        post(headers, certificate(headers[32], 0xf));
        uint256 many = vm.snapshotGasLastCall("BlindedInbox.post, 33 headers");
        // On top come 21,000 and 448 bytes of calldata a header, at most 40 gas each even at the floor price.
        check(one + 21_000 + 12_000 < 300_000, "a posting above 300,000 gas");
        check((many - one) / 32 < 15_000, "a further batch above 15,000 gas");
        check(calldataGas(headers[32]) + (many - one) / 32 < 15_000, "a further batch with its calldata");
        (uint64 number, uint64 timestampMs, uint64 origin, uint64 cursor) = inbox.head();
        checkEqual(number, 35, "number");
        checkEqual(timestampMs, headers[32].timestampMs, "time");
        checkEqual(origin, headers[32].l1OriginNumber, "origin");
        checkEqual(cursor, 0, "cursor");
    }

    /// @dev What a header costs as calldata at the floor price of EIP-7623.
    function calldataGas(BatchHeader memory header) internal pure returns (uint256 gas) {
        bytes memory encoded = abi.encode(header);
        for (uint256 i = 0; i < encoded.length; i++) {
            gas += encoded[i] == 0 ? 10 : 40;
        }
    }

    function testFuzzPostAndProve(uint256 count, uint256 chosen) public {
        count = bound(count, 1, 20);
        BatchHeader[] memory before = run(3);
        post(before, certificate(before[2], THREE_OF_FOUR));
        BatchHeader[] memory headers = run(count);
        post(headers, certificate(headers[count - 1], THREE_OF_FOUR));
        uint256 index = bound(chosen, 0, count - 1);
        (bytes32 root, bytes32[] memory proof) = prove(headers, index);
        uint64 last = uint64(3 + count);
        (bool posted, bytes32 hash) = inbox.verifyHeader(headers[index], 4, last, root, proof);
        check(posted, "posted");
        checkEqual(hash, inbox.hashHeader(headers[index]), "hash");

        BatchHeader memory changed = headers[index];
        changed.gas ^= 1;
        (posted,) = inbox.verifyHeader(changed, 4, last, root, proof);
        check(!posted, "another header");
        changed.gas ^= 1;
        (posted,) = inbox.verifyHeader(changed, 3, last, root, proof);
        check(!posted, "another range");
        (posted,) = inbox.verifyHeader(before[0], 4, last, root, proof);
        check(!posted, "number below the run");
        bytes32[] memory longer = new bytes32[](proof.length + 1);
        (posted,) = inbox.verifyHeader(headers[index], 4, last, root, longer);
        check(!posted, "longer proof");
        (posted,) = inbox.verifyHeader(headers[index], 4, last + 1, root, proof);
        check(!posted, "no such run");
    }

    function testManyHeadersTree() public {
        BatchHeader[] memory headers = run(5);
        post(headers, certificate(headers[4], THREE_OF_FOUR));
        (bytes32 root,) = prove(headers, 0);
        checkEqual(inbox.runCommitment(5), keccak256(abi.encode(uint64(1), uint64(5), root)), "commitment");
        checkEqual(inbox.runCommitment(4), bytes32(0), "no run ends here");
    }

    /// @dev The tree level by level, padding and all, written apart from the contract's.
    function prove(BatchHeader[] memory headers, uint256 index)
        internal
        view
        returns (bytes32 root, bytes32[] memory proof)
    {
        uint256 depth = 0;
        while ((1 << depth) < headers.length) depth++;
        bytes32[] memory level = new bytes32[](1 << depth);
        for (uint256 i = 0; i < headers.length; i++) {
            level[i] = keccak256(bytes.concat(hex"00", inbox.hashHeader(headers[i])));
        }
        proof = new bytes32[](depth);
        for (uint256 d = 0; d < depth; d++) {
            proof[d] = level[index ^ 1];
            bytes32[] memory next = new bytes32[](level.length / 2);
            for (uint256 i = 0; i < next.length; i++) {
                next[i] = keccak256(bytes.concat(hex"01", level[2 * i], level[2 * i + 1]));
            }
            level = next;
            index /= 2;
        }
        root = level[0];
    }

    function expectPostRefusal(BatchHeader[] memory headers, bytes memory reason) internal {
        BlindedInbox.Certificate memory c = certificate(headers[headers.length - 1], THREE_OF_FOUR);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.post(headers, "", c);
    }

    function testEmptyRun() public {
        BlindedInbox.Certificate memory c;
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.EmptyRun.selector));
        inbox.post(new BatchHeader[](0), "", c);
    }

    function testChainRules() public {
        BatchHeader[] memory headers = run(3);
        headers[1].version = 2;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.UnsupportedVersion.selector, 2));
        headers = run(3);
        headers[1].number = 3;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 2, 3));
        headers = run(3);
        headers[2].parentHash = keccak256("other");
        expectPostRefusal(
            headers,
            abi.encodeWithSelector(
                BlindedInbox.WrongParent.selector, 3, inbox.hashHeader(headers[1]), keccak256("other")
            )
        );
        headers = run(3);
        headers[0].timestampMs = 0;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.TimeNotIncreasing.selector, 1));
        headers = run(2);
        headers[0].l1OriginNumber = 9;
        headers[1].parentHash = inbox.hashHeader(headers[0]);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.OriginDecreasing.selector, 2));
        headers = run(2);
        headers[0].forcedCursor = 1;
        headers[1].parentHash = inbox.hashHeader(headers[0]);
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedCursorDecreasing.selector, 2));
    }

    function testPostedTwice() public {
        BatchHeader[] memory headers = run(2);
        post(headers, certificate(headers[1], THREE_OF_FOUR));
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.WrongNumber.selector, 3, 1));
    }

    function testStateCarriesOver() public {
        BatchHeader[] memory headers = run(2);
        headers[1].forcedCursor = 5;
        post(headers, certificate(headers[1], THREE_OF_FOUR));
        headers = run(1);
        headers[0].timestampMs -= 250;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.TimeNotIncreasing.selector, 3));
        headers = run(1);
        headers[0].l1OriginNumber -= 1;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.OriginDecreasing.selector, 3));
        headers = run(1);
        headers[0].forcedCursor -= 1;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.ForcedCursorDecreasing.selector, 3));
    }

    function testRunMayNotCrossEpochs() public {
        registerEpoch(EPOCH_LAST + 10, 4, 3);
        BatchHeader[] memory headers = run(3);
        headers[1].epoch = 2;
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.RunCrossesEpoch.selector, 2));
        // All claim epoch 2, the certificate is of epoch 2's committee, but the numbers are of epoch 1.
        headers = run(1);
        headers[0].epoch = 2;
        expectPostRefusal(
            headers, abi.encodeWithSelector(CommitteeRegistry.NumberOutsideEpoch.selector, 2, 1)
        );
    }

    function testRunMayNotReachBackIntoAnEarlierEpoch() public {
        deployContracts();
        registerEpoch(2, 4, 3);
        registerEpoch(10, 4, 3);
        BatchHeader[] memory headers = run(4);
        bytes32 parent = inbox.headHash();
        for (uint256 i = 0; i < 4; i++) {
            headers[i].epoch = 2;
            headers[i].parentHash = parent;
            parent = inbox.hashHeader(headers[i]);
        }
        expectPostRefusal(headers, abi.encodeWithSelector(BlindedInbox.RunCrossesEpoch.selector, 1));
    }

    function testCertificateMustBeOfTheLastHeader() public {
        BatchHeader[] memory headers = run(2);
        BlindedInbox.Certificate memory c = certificate(headers[0], THREE_OF_FOUR);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.BadAggregateSignature.selector));
        inbox.post(headers, "", c);
        c = certificate(headers[1], 0x3);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.TooFewSigners.selector, 2, 3));
        inbox.post(headers, "", c);
    }

    function testOnlyTopLevel() public {
        BatchHeader[] memory headers = run(1);
        BlindedInbox.Certificate memory c = certificate(headers[0], THREE_OF_FOUR);
        bytes memory reason = abi.encodeWithSelector(BlindedInbox.NotTopLevel.selector);
        Middleman middleman = new Middleman();
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        middleman.post(inbox, headers, c);
        // An account that delegates (EIP-7702) could wrap the call although it is the origin.
        vm.etch(POSTER, abi.encodePacked(hex"ef0100", address(middleman)));
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.post(headers, "", c);
        vm.prank(POSTER, POSTER);
        vm.expectRevert(reason);
        inbox.postData(1, "");
    }

    function testPostData() public {
        BatchHeader[] memory headers = run(2);
        post(headers, certificate(headers[1], THREE_OF_FOUR));
        vm.expectEmit(true, true, true, true, address(inbox));
        emit DataPosted(2, POSTER);
        vm.prank(POSTER, POSTER);
        inbox.postData(2, hex"0102");
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NotPosted.selector, 3));
        inbox.postData(3, "");
        vm.prank(POSTER, POSTER);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NotPosted.selector, 0));
        inbox.postData(0, "");
    }

    // Bond

    function depositBond(uint256 amount) internal {
        vm.deal(address(this), amount);
        inbox.depositBond{ value: amount }();
    }

    function testBondLifecycle() public {
        vm.deal(address(0xb0b), 5 ether);
        vm.expectEmit(true, true, true, true, address(inbox));
        emit BondDeposited(address(0xb0b), 5 ether, 5 ether);
        vm.prank(address(0xb0b));
        inbox.depositBond{ value: 5 ether }();
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(2 ether);
        uint256 unlocksAt = block.timestamp + 7 days;

        vm.warp(unlocksAt - 1);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.WithdrawalLocked.selector, unlocksAt));
        inbox.withdrawBond(payable(address(0xcafe)));
        vm.warp(unlocksAt);
        vm.prank(sequencer);
        inbox.withdrawBond(payable(address(0xcafe)));
        checkEqual(address(0xcafe).balance, 2 ether, "taken out");
        checkEqual(inbox.bond(), 3 ether, "left");
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NoWithdrawalAnnounced.selector));
        inbox.withdrawBond(payable(address(0xcafe)));
    }

    function testAnnouncementCanBeReplacedAndTakenBack() public {
        depositBond(5 ether);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(2 ether);
        vm.warp(block.timestamp + 7 days);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(5 ether);
        vm.prank(sequencer);
        vm.expectRevert(
            abi.encodeWithSelector(BlindedInbox.WithdrawalLocked.selector, block.timestamp + 7 days)
        );
        inbox.withdrawBond(payable(sequencer));
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(0);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NoWithdrawalAnnounced.selector));
        inbox.withdrawBond(payable(sequencer));
    }

    function testFuzzOnlySequencerWithdraws(address caller) public {
        vm.assume(caller != sequencer);
        depositBond(1 ether);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NotSequencer.selector, caller));
        inbox.announceBondWithdrawal(1);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NotSequencer.selector, caller));
        inbox.withdrawBond(payable(caller));
    }

    function testBondRefusals() public {
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.ZeroAmount.selector));
        inbox.depositBond();
        depositBond(1 ether);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.AmountAboveBond.selector, 2 ether, 1 ether));
        inbox.announceBondWithdrawal(2 ether);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(1 ether);
        vm.warp(block.timestamp + 7 days);
        Unpayable unpayable = new Unpayable();
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.TransferFailed.selector, address(unpayable)));
        inbox.withdrawBond(payable(address(unpayable)));
        checkEqual(inbox.bond(), 1 ether, "bond");
    }

    // Equivocation

    function conflict() internal view returns (BatchHeader memory first, BatchHeader memory second) {
        first = run(1)[0];
        second = run(1)[0];
        second.envelopeRoot = keccak256("reordered");
    }

    function expectSlashRefusal(
        BatchHeader memory first,
        bytes memory firstSignature,
        BatchHeader memory second,
        bytes memory secondSignature,
        bytes memory reason
    ) internal {
        vm.prank(REPORTER);
        vm.expectRevert(reason);
        inbox.slashEquivocation(first, firstSignature, second, secondSignature);
    }

    function testFuzzSlashEquivocation(uint96 amount) public {
        vm.assume(amount != 0);
        depositBond(amount);
        vm.prank(sequencer);
        inbox.announceBondWithdrawal(amount);
        (BatchHeader memory first, BatchHeader memory second) = conflict();
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        bytes32 firstHash = inbox.hashHeader(first);
        bytes32 secondHash = inbox.hashHeader(second);
        uint256 reward = uint256(amount) / 2;
        vm.expectEmit(true, true, true, true, address(inbox));
        emit Equivocation(1, REPORTER, firstHash, secondHash, amount - reward, reward);
        vm.prank(REPORTER);
        inbox.slashEquivocation(first, one, second, two);
        check(inbox.equivocated(1), "marked");
        checkEqual(inbox.bond(), 0, "bond");
        checkEqual(inbox.rewards(REPORTER), reward, "reward");
        checkEqual(address(inbox).balance, reward, "held");
        check(address(0).balance * 2 >= amount, "at least half is burnt");

        vm.warp(block.timestamp + 7 days);
        vm.prank(sequencer);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.NoWithdrawalAnnounced.selector));
        inbox.withdrawBond(payable(sequencer));
        if (reward == 0) vm.expectRevert(abi.encodeWithSelector(BlindedInbox.ZeroAmount.selector));
        vm.prank(REPORTER);
        inbox.claimReward();
        checkEqual(REPORTER.balance, reward, "claimed");
    }

    function testSlashGas() public {
        depositBond(1 ether);
        (BatchHeader memory first, BatchHeader memory second) = conflict();
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        vm.prank(REPORTER);
        inbox.slashEquivocation(first, one, second, two);
        vm.snapshotGasLastCall("BlindedInbox.slashEquivocation");
    }

    function testSameEvidenceNeverTwice() public {
        depositBond(1 ether);
        (BatchHeader memory first, BatchHeader memory second) = conflict();
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        vm.prank(REPORTER);
        inbox.slashEquivocation(first, one, second, two);
        depositBond(1 ether);
        bytes memory reason = abi.encodeWithSelector(BlindedInbox.AlreadySlashed.selector, 1);
        expectSlashRefusal(second, two, first, one, reason);
    }

    function testSlashRefusals() public {
        (BatchHeader memory first, BatchHeader memory second) = conflict();
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        expectSlashRefusal(first, one, second, two, abi.encodeWithSelector(BlindedInbox.NoBond.selector));
        depositBond(1 ether);
        expectSlashRefusal(
            first,
            one,
            first,
            one,
            abi.encodeWithSelector(BlindedInbox.SameHeader.selector, inbox.hashHeader(first))
        );
        BatchHeader memory next = run(2)[1];
        expectSlashRefusal(
            first,
            one,
            next,
            signHeader(SEQUENCER_KEY, next),
            abi.encodeWithSelector(BlindedInbox.DifferentNumbers.selector, 1, 2)
        );
        bytes memory bad = abi.encodeWithSelector(BlindedInbox.BadSequencerSignature.selector, 2);
        expectSlashRefusal(first, one, second, signHeader(7, second), bad);
        expectSlashRefusal(first, one, second, one, bad);
        bad = abi.encodeWithSelector(BlindedInbox.BadSequencerSignature.selector, 1);
        expectSlashRefusal(first, "", second, two, bad);
        checkEqual(inbox.bond(), 1 ether, "bond");
    }

    function testSignatureMustBeStrict() public {
        depositBond(1 ether);
        (BatchHeader memory first, BatchHeader memory second) = conflict();
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        bytes memory bad = abi.encodeWithSelector(BlindedInbox.BadSequencerSignature.selector, 1);

        bytes32 r;
        uint256 s;
        assembly ("memory-safe") {
            r := mload(add(one, 0x20))
            s := mload(add(one, 0x40))
        }
        uint8 v = uint8(one[64]);
        // The mirrored signature (high s) recovers to the same signer in the precompile.
        bytes memory mirrored = abi.encodePacked(r, SECP256K1_ORDER - s, uint8(55 - v));
        expectSlashRefusal(first, mirrored, second, two, bad);
        expectSlashRefusal(first, abi.encodePacked(r, s, uint8(v - 27)), second, two, bad);
        expectSlashRefusal(first, bytes.concat(one, hex"00"), second, two, bad);
        expectSlashRefusal(first, new bytes(65), second, two, bad); // recovers to nobody
        expectSlashRefusal(first, abi.encodePacked(bytes32(0), s, v), second, two, bad);
    }

    function testEvidenceOfAnotherDeployment() public {
        depositBond(1 ether);
        (BatchHeader memory first, BatchHeader memory second) = conflict();
        BlindedInbox here = inbox;
        deployContracts(); // signs in the new domain from here on
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.BadSequencerSignature.selector, 1));
        here.slashEquivocation(first, one, second, two);
    }

    function testClaimRefusals() public {
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.ZeroAmount.selector));
        inbox.claimReward();
        depositBond(1 ether);
        Unpayable reporter = new Unpayable();
        (BatchHeader memory first, BatchHeader memory second) = conflict();
        bytes memory one = signHeader(SEQUENCER_KEY, first);
        bytes memory two = signHeader(SEQUENCER_KEY, second);
        vm.prank(address(reporter));
        inbox.slashEquivocation(first, one, second, two);
        vm.expectRevert(abi.encodeWithSelector(BlindedInbox.TransferFailed.selector, address(reporter)));
        reporter.claim(inbox);
        checkEqual(inbox.rewards(address(reporter)), 0.5 ether, "still owed");
    }
}
