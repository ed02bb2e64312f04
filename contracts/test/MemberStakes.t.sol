// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitReveal } from "../src/CommitReveal.sol";
import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { MemberStakes } from "../src/MemberStakes.sol";
import { IMemberStakes } from "../src/interfaces/IMemberStakes.sol";
import { BatchHeader } from "../src/libraries/BatchHeaders.sol";
import { Bls12381 } from "../src/libraries/Bls12381.sol";
import { BlsSigner } from "./helpers/BlsSigner.sol";
import { Deployment } from "./helpers/Deployment.sol";
import { Unpayable } from "./helpers/Unpayable.sol";

contract MemberStakesTest is Deployment {
    address internal constant OWNER = address(0x0e4e4);
    address internal constant REPORTER = address(0x4e904);
    bytes32 internal constant SALT = keccak256("salt");
    uint96 internal constant STAKE_WEI = 8 ether;

    MemberStakes internal stakes;

    event StakeSlashed(
        bytes32 indexed keyHash,
        uint64 indexed epoch,
        uint64 indexed number,
        address reporter,
        uint256 burnt,
        uint256 reward
    );

    event StakeDeposited(bytes32 indexed keyHash, address indexed owner, uint256 amount, uint256 stake);
    event StakeWithdrawalAnnounced(bytes32 indexed keyHash, uint256 unlocksAt);
    event StakeWithdrawn(bytes32 indexed keyHash, address indexed to, uint256 amount);
    event RewardClaimed(address indexed reporter, uint256 amount);

    function memberStakes() internal view override returns (IMemberStakes) {
        // Deployed after registry, queue and inbox.
        return IMemberStakes(vm.computeCreateAddress(address(this), vm.getNonce(address(this)) + 3));
    }

    function setUp() public {
        vm.warp(1_800_000_000);
        deployContracts();
        stakes = new MemberStakes(registry, inbox, STAKE_WEI);
        vm.deal(address(this), 1_000 ether);
        for (uint256 member = 1; member <= 4; member++) {
            deposit(member, STAKE_WEI);
            serve(member, 200);
        }
        registerEpoch(100, 4, 3);
    }

    function keyHash(uint256 member) internal view returns (bytes32) {
        return keccak256(BlsSigner.key(memberSecret(member)));
    }

    function deposit(uint256 member, uint256 amount) internal {
        uint256 secret = memberSecret(member);
        bytes memory digest = abi.encodePacked(stakes.ownerDigest(keyHash(member), OWNER));
        bytes memory signature = BlsSigner.sign(secret, Bls12381.SIGNATURE_TAG, digest);
        stakes.deposit{ value: amount }(BlsSigner.key(secret), OWNER, signature);
    }

    function serve(uint256 member, uint64 lastNumber) internal {
        bytes32 key = keyHash(member);
        vm.prank(OWNER);
        stakes.serve(key, lastNumber);
    }

    function stakeOf(uint256 member) internal view returns (uint256 amount) {
        (, amount,,,) = stakes.stakes(keyHash(member));
    }

    function acknowledge(BatchHeader memory header, uint64 signers)
        internal
        view
        returns (MemberStakes.Acknowledged memory)
    {
        return MemberStakes.Acknowledged({
            header: header,
            signers: signers,
            signature: aggregate(1, header.number, inbox.hashHeader(header), signers)
        });
    }

    /// @dev Two headers of one number, the first of them acknowledged by members 1 to 3, the second by 2 to 4.
    function conflict()
        internal
        view
        returns (MemberStakes.Acknowledged memory first, MemberStakes.Acknowledged memory second)
    {
        BatchHeader[] memory headers = run(1);
        first = acknowledge(headers[0], 0x7);
        headers = run(1);
        headers[0].gas += 1;
        second = acknowledge(headers[0], 0xe);
    }

    function commitToConflict(MemberStakes.Acknowledged memory first, MemberStakes.Acknowledged memory second)
        internal
    {
        bytes32 low = inbox.hashHeader(first.header);
        bytes32 high = inbox.hashHeader(second.header);
        if (low > high) (low, high) = (high, low);
        bytes32 evidence = keccak256(abi.encode(uint64(1), first.header.number, low, high));
        vm.prank(REPORTER);
        stakes.commit(keccak256(abi.encode(REPORTER, evidence, SALT)));
        pass(1);
    }

    /// @dev The reporter's evidence that a header is not of the number that its acknowledgement names.
    function commitToWrong(uint64 epoch, uint64 number, MemberStakes.Acknowledged memory wrong) internal {
        bytes32 evidence = keccak256(abi.encode(epoch, number, inbox.hashHeader(wrong.header)));
        vm.prank(REPORTER);
        stakes.commit(keccak256(abi.encode(REPORTER, evidence, SALT)));
        pass(1);
    }

    /// @dev A header of number 2 that members acknowledged for number 1.
    function wrongNumber(uint64 signers) internal view returns (MemberStakes.Acknowledged memory) {
        BatchHeader memory header = run(2)[1];
        return MemberStakes.Acknowledged({
            header: header, signers: signers, signature: aggregate(1, 1, inbox.hashHeader(header), signers)
        });
    }

    function expectRefusal(
        MemberStakes.Acknowledged memory first,
        MemberStakes.Acknowledged memory second,
        bytes memory reason
    ) internal {
        vm.prank(REPORTER);
        vm.expectRevert(reason);
        stakes.slashDouble(1, first, second, SALT);
    }

    /// @dev Whoever signed both certificates loses everything; who signed one keeps it (M-1).
    function testTwoAcknowledgementsOfANumberCostTheStake() public {
        (MemberStakes.Acknowledged memory first, MemberStakes.Acknowledged memory second) = conflict();
        expectRefusal(
            first,
            second,
            abi.encodeWithSelector(CommitReveal.NotCommitted.selector, commitment(first, second))
        );
        commitToConflict(first, second);
        uint256 burntBefore = address(0).balance;
        vm.expectEmit(true, true, true, true, address(stakes));
        emit StakeSlashed(keyHash(2), 1, 1, REPORTER, STAKE_WEI / 2, STAKE_WEI / 2);
        vm.prank(REPORTER);
        stakes.slashDouble(1, first, second, SALT);
        vm.snapshotGasLastCall("MemberStakes.slashDouble, two certificates");
        checkEqual(stakeOf(1), STAKE_WEI, "1 signed the first alone");
        checkEqual(stakeOf(2), 0, "2");
        checkEqual(stakeOf(3), 0, "3");
        checkEqual(stakeOf(4), STAKE_WEI, "4 signed the second alone");
        checkEqual(address(0).balance - burntBefore, STAKE_WEI, "half is burnt");
        vm.prank(REPORTER);
        stakes.claimReward();
        checkEqual(REPORTER.balance, STAKE_WEI, "half is the reporter's");

        // The same evidence takes no later stake.
        deposit(2, STAKE_WEI);
        commitToConflict(first, second);
        expectRefusal(first, second, abi.encodeWithSelector(MemberStakes.NobodyToPunish.selector));
        checkEqual(stakeOf(2), STAKE_WEI, "2 again");
    }

    function commitment(MemberStakes.Acknowledged memory first, MemberStakes.Acknowledged memory second)
        internal
        view
        returns (bytes32)
    {
        bytes32 low = inbox.hashHeader(first.header);
        bytes32 high = inbox.hashHeader(second.header);
        if (low > high) (low, high) = (high, low);
        bytes32 evidence = keccak256(abi.encode(uint64(1), first.header.number, low, high));
        return keccak256(abi.encode(REPORTER, evidence, SALT));
    }

    function testWhatIsNoConflict() public {
        (MemberStakes.Acknowledged memory first, MemberStakes.Acknowledged memory second) = conflict();
        expectRefusal(first, first, abi.encodeWithSelector(MemberStakes.NoConflict.selector));
        BatchHeader[] memory two = run(2);
        MemberStakes.Acknowledged memory next = acknowledge(two[1], 0x7);
        expectRefusal(first, next, abi.encodeWithSelector(MemberStakes.NoConflict.selector));
        expectRefusal(next, first, abi.encodeWithSelector(MemberStakes.NoConflict.selector));
        second.signers = 0xf; // member 1 did not sign it
        expectRefusal(first, second, abi.encodeWithSelector(MemberStakes.BadSignature.selector));
        expectRefusal(second, first, abi.encodeWithSelector(MemberStakes.BadSignature.selector));
        second.signers = 0;
        expectRefusal(first, second, abi.encodeWithSelector(MemberStakes.BadSignature.selector));
        // Nobody signed both.
        first = acknowledge(first.header, 0x3);
        second = acknowledge(second.header, 0xc);
        commitToConflict(first, second);
        expectRefusal(first, second, abi.encodeWithSelector(MemberStakes.NobodyToPunish.selector));
    }

    /// @dev Number 1 of the first epoch and number 1 of the next one, where the first ended without a number.
    function testAcknowledgementsOfTwoEpochsAreNoConflict() public {
        BatchHeader memory header = run(1)[0];
        MemberStakes.Acknowledged memory first = acknowledge(header, 0x7);
        header = run(1)[0];
        header.epoch = 2;
        MemberStakes.Acknowledged memory second = MemberStakes.Acknowledged({
            header: header, signers: 0x7, signature: aggregate(2, 1, inbox.hashHeader(header), 0x7)
        });
        registerEpoch(150, 4, 3);
        bytes memory reason = abi.encodeWithSelector(MemberStakes.BadSignature.selector);
        expectRefusal(first, second, reason);
        vm.prank(REPORTER);
        vm.expectRevert(reason);
        stakes.slashDouble(2, first, second, SALT);
        vm.prank(REPORTER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.NothingWrong.selector, inbox.hashHeader(header)));
        stakes.slashWrong(2, 1, second, SALT);
    }

    /// @dev What was signed without knowing of a header that L1 made may be signed anew.
    function testAHeaderMadeByL1Excuses() public {
        BatchHeader[] memory headers = run(1);
        postRun(headers);
        forceTransaction(100, 30_000);
        BatchHeader[] memory displaced = run(2);
        MemberStakes.Acknowledged memory first = acknowledge(displaced[1], 0x7); // number 3
        pass(POSTING_DEADLINE + 1);
        inbox.postL1Header(headers[0]);
        pass(FINALITY + 1);
        BatchHeader[] memory after_ = run(1);
        MemberStakes.Acknowledged memory second = acknowledge(after_[0], 0x7); // number 3, follows it
        commitToConflict(first, second);
        expectRefusal(first, second, abi.encodeWithSelector(MemberStakes.Excused.selector, 3));
        expectRefusal(second, first, abi.encodeWithSelector(MemberStakes.Excused.selector, 3));
    }

    /// @dev An acknowledgement names number and epoch; a header of others cannot be a mistake (M-2).
    function testAnAcknowledgementOfAnotherNumbersHeaderCostsTheStake() public {
        MemberStakes.Acknowledged memory wrong = wrongNumber(0x2);
        bytes32 headerHash = inbox.hashHeader(wrong.header);
        vm.prank(REPORTER);
        vm.expectRevert(
            abi.encodeWithSelector(
                CommitReveal.NotCommitted.selector,
                keccak256(abi.encode(REPORTER, keccak256(abi.encode(uint64(1), uint64(1), headerHash)), SALT))
            )
        );
        stakes.slashWrong(1, 1, wrong, SALT);
        commitToWrong(1, 1, wrong);
        wrong.signers = 0x6; // 3 did not sign it
        vm.prank(REPORTER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.BadSignature.selector));
        stakes.slashWrong(1, 1, wrong, SALT);
        wrong.signers = 0x2;
        vm.prank(REPORTER);
        stakes.slashWrong(1, 1, wrong, SALT);
        checkEqual(stakeOf(2), 0, "2");
        checkEqual(stakeOf(1), STAKE_WEI, "1");
        wrong.signature = aggregate(1, 2, headerHash, 0x2);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.NothingWrong.selector, headerHash));
        stakes.slashWrong(1, 2, wrong, SALT);
    }

    function testNoEpochWithoutStakes() public {
        CommitteeRegistry.Member[] memory members = committee(5);
        bytes memory reason = abi.encodeWithSelector(MemberStakes.StakeTooSmall.selector, keyHash(5), 0);
        vm.prank(GOVERNOR);
        vm.expectRevert(reason);
        registry.registerEpoch(parameters(200, 3), members);
        deposit(5, STAKE_WEI - 1);
        reason = abi.encodeWithSelector(MemberStakes.StakeTooSmall.selector, keyHash(5), STAKE_WEI - 1);
        vm.prank(GOVERNOR);
        vm.expectRevert(reason);
        registry.registerEpoch(parameters(200, 3), members);
        deposit(5, 1);
        serve(5, 200);
        vm.prank(GOVERNOR);
        registry.registerEpoch(parameters(200, 3), members);
        (,, uint64 lastEpoch,,) = stakes.stakes(keyHash(5));
        checkEqual(lastEpoch, 2, "bound");
        bytes32 fifth = keyHash(5);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.NotRegistry.selector, address(this)));
        stakes.bind(fifth, 3, 300);
    }

    /// @dev Proofs of possession can be shown again, for any number: a member's owner says up to which it serves.
    function testTheGovernorCannotHoldStakesHostage() public {
        CommitteeRegistry.Member[] memory members = committee(4);
        bytes memory reason =
            abi.encodeWithSelector(MemberStakes.NotServing.selector, keyHash(1), 200, type(uint64).max);
        vm.prank(GOVERNOR);
        vm.expectRevert(reason);
        registry.registerEpoch(parameters(type(uint64).max, 3), members);

        // Lower at any time: what is registered stays bound, and nothing follows it.
        vm.expectEmit(true, true, true, true, address(stakes));
        emit MemberStakes.Serves(keyHash(1), 100);
        serve(1, 100);
        reason = abi.encodeWithSelector(MemberStakes.NotServing.selector, keyHash(1), 100, 101);
        vm.prank(GOVERNOR);
        vm.expectRevert(reason);
        registry.registerEpoch(parameters(101, 3), members);
        serve(1, 0);
        bytes32 key = keyHash(1);
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.EpochNotOver.selector, 1, 100));
        stakes.announceWithdrawal(key, true);
        postRun(run(100));
        vm.prank(OWNER);
        stakes.announceWithdrawal(key, true);

        // Only the owner says so.
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.NotOwner.selector, GOVERNOR));
        stakes.serve(key, type(uint64).max);
        key = keyHash(9);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.NotOwner.selector, address(this)));
        stakes.serve(key, 1);
    }

    /// @dev An epoch is never lengthened but by what L1 made, and that is posted already.
    function testFuzzAStakeIsBoundToNoMoreThanItServes(uint64 servesUpTo, uint64 lastNumber) public {
        lastNumber = uint64(bound(lastNumber, 101, type(uint64).max));
        serve(1, servesUpTo);
        for (uint256 member = 2; member <= 4; member++) {
            serve(member, type(uint64).max);
        }
        CommitteeRegistry.Member[] memory members = committee(4);
        bytes32 key = keyHash(1);
        bool refused = servesUpTo < lastNumber;
        vm.prank(GOVERNOR);
        if (refused) {
            vm.expectRevert(
                abi.encodeWithSelector(MemberStakes.NotServing.selector, key, servesUpTo, lastNumber)
            );
        }
        registry.registerEpoch(parameters(lastNumber, 3), members);
        (,, uint64 lastEpoch,,) = stakes.stakes(key);
        checkEqual(lastEpoch, refused ? 1 : 2, "bound");
    }

    function testAStakeLeavesAfterItsEpoch() public {
        bytes32 key = keyHash(1);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.NotOwner.selector, address(this)));
        stakes.announceWithdrawal(key, true);
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.EpochNotOver.selector, 1, 100));
        stakes.announceWithdrawal(key, true);
        postRun(run(100));
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.StakeLocked.selector, 0));
        stakes.withdraw(key, OWNER);
        vm.prank(OWNER);
        stakes.announceWithdrawal(key, true);
        uint256 unlocksAt = block.timestamp + 7 days;

        // Who is about to leave is no member of a further epoch.
        CommitteeRegistry.Member[] memory members = committee(4);
        vm.prank(GOVERNOR);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.StakeLeaves.selector, key));
        registry.registerEpoch(parameters(200, 3), members);

        vm.warp(unlocksAt - 1);
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.StakeLocked.selector, unlocksAt));
        stakes.withdraw(key, OWNER);
        vm.warp(unlocksAt);
        vm.prank(OWNER);
        stakes.withdraw(key, OWNER);
        checkEqual(OWNER.balance, STAKE_WEI, "back");
        checkEqual(stakeOf(1), 0, "gone");
    }

    /// @dev Nobody but the member names who takes out its stake.
    function testTheMemberNamesTheOwner() public {
        uint256 secret = memberSecret(9);
        bytes memory key = BlsSigner.key(secret);
        bytes memory digest = abi.encodePacked(stakes.ownerDigest(keccak256(key), OWNER));
        bytes memory signature = BlsSigner.sign(secret, Bls12381.SIGNATURE_TAG, digest);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.BadOwner.selector, REPORTER));
        stakes.deposit{ value: 1 }(key, REPORTER, signature);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.ZeroAmount.selector));
        stakes.deposit(key, OWNER, signature);
        stakes.deposit{ value: 1 }(key, OWNER, signature);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.BadOwner.selector, REPORTER));
        stakes.deposit{ value: 1 }(key, REPORTER, signature);
        stakes.deposit{ value: 1 }(key, OWNER, "");
        checkEqual(stakeOf(9), 2, "anyone adds to it");
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.ZeroStake.selector));
        new MemberStakes(registry, inbox, 0);
    }

    /// @dev One commitment stands for both orders.
    function testFuzzTheOrderOfTheTwoHeadersIsTheReportersChoice(bool turned) public {
        (MemberStakes.Acknowledged memory first, MemberStakes.Acknowledged memory second) = conflict();
        commitToConflict(first, second);
        if (turned) (first, second) = (second, first);
        vm.prank(REPORTER);
        stakes.slashDouble(1, first, second, SALT);
        checkEqual(stakes.rewards(REPORTER), STAKE_WEI, "half of two stakes");
    }

    function testRewardsAddUpAndArePaidOnce() public {
        vm.prank(REPORTER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.ZeroAmount.selector));
        stakes.claimReward();
        for (uint64 member = 1; member <= 2; member++) {
            MemberStakes.Acknowledged memory wrong = wrongNumber(member);
            commitToWrong(1, 1, wrong);
            vm.prank(REPORTER);
            stakes.slashWrong(1, 1, wrong, SALT);
        }
        checkEqual(stakes.rewards(REPORTER), STAKE_WEI, "half of two stakes");
        vm.expectEmit(true, true, true, true, address(stakes));
        emit RewardClaimed(REPORTER, STAKE_WEI);
        vm.prank(REPORTER);
        stakes.claimReward();
        checkEqual(REPORTER.balance, STAKE_WEI, "paid");
        checkEqual(address(stakes).balance, 2 * STAKE_WEI, "what is not the reporter's");
        vm.prank(REPORTER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.ZeroAmount.selector));
        stakes.claimReward();
    }

    /// @dev Who has nothing to lose is not done with: the evidence takes what it puts down later.
    function testEvidenceWaitsForAStake() public {
        MemberStakes.Acknowledged memory wrong = wrongNumber(0x2);
        commitToWrong(1, 1, wrong);
        vm.prank(REPORTER);
        stakes.slashWrong(1, 1, wrong, SALT);
        for (uint256 round = 0; round < 2; round++) {
            (MemberStakes.Acknowledged memory first, MemberStakes.Acknowledged memory second) = conflict();
            commitToConflict(first, second);
            vm.prank(REPORTER);
            stakes.slashDouble(1, first, second, SALT);
            checkEqual(stakeOf(2) + stakeOf(3), 0, "what they have");
            deposit(2, STAKE_WEI);
        }
        checkEqual(stakes.rewards(REPORTER), uint256(STAKE_WEI) * 3 / 2, "of three stakes");
    }

    /// @dev A loss ends the announcement: what is deposited later begins anew.
    function testALostStakeIsAnnouncedNoMore() public {
        MemberStakes.Acknowledged memory wrong = wrongNumber(0x2);
        postRun(run(100));
        bytes32 key = keyHash(2);
        vm.prank(OWNER);
        stakes.announceWithdrawal(key, true);
        commitToWrong(1, 1, wrong);
        vm.warp(block.timestamp + 30 days); // not taken out yet, and not safe
        vm.prank(REPORTER);
        stakes.slashWrong(1, 1, wrong, SALT);
        checkStake(2, 0, 1, 0);
        deposit(2, 1 ether);
        checkStake(2, 1 ether, 1, 0);
    }

    function checkStake(uint256 member, uint256 amount, uint64 lastEpoch, uint256 unlocksAt) internal view {
        (address owner_, uint256 amount_, uint64 lastEpoch_, uint64 unlocksAt_,) =
            stakes.stakes(keyHash(member));
        checkEqual(uint160(owner_), uint160(OWNER), "owner");
        checkEqual(amount_, amount, "amount");
        checkEqual(lastEpoch_, lastEpoch, "last epoch");
        checkEqual(unlocksAt_, unlocksAt, "unlocks at");
    }

    /// @dev A key that was a member of nothing leaves when it likes, a week after it said so.
    function testAStakeComesAndGoes() public {
        bytes32 key = keyHash(5);
        vm.expectEmit(true, true, true, true, address(stakes));
        emit StakeDeposited(key, OWNER, 2 ether, 2 ether);
        deposit(5, 2 ether);
        vm.expectEmit(true, true, true, true, address(stakes));
        emit StakeDeposited(key, OWNER, 1 ether, 3 ether);
        deposit(5, 1 ether);

        uint256 unlocksAt = block.timestamp + 7 days;
        vm.expectEmit(true, true, true, true, address(stakes));
        emit StakeWithdrawalAnnounced(key, unlocksAt);
        announce(key, true);
        checkStake(5, 3 ether, 0, unlocksAt);
        vm.expectEmit(true, true, true, true, address(stakes));
        emit StakeWithdrawalAnnounced(key, 0);
        announce(key, false);
        checkStake(5, 3 ether, 0, 0);
        vm.warp(unlocksAt);
        expectWithdrawal(key, OWNER, abi.encodeWithSelector(MemberStakes.StakeLocked.selector, 0));

        announce(key, true);
        vm.warp(block.timestamp + 30 days);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.NotOwner.selector, address(this)));
        stakes.withdraw(key, address(this));
        address unpayable = address(new Unpayable());
        expectWithdrawal(
            key, unpayable, abi.encodeWithSelector(MemberStakes.TransferFailed.selector, unpayable)
        );
        vm.expectEmit(true, true, true, true, address(stakes));
        emit StakeWithdrawn(key, address(0xcafe), 3 ether);
        expectWithdrawal(key, address(0xcafe), "");
        checkEqual(address(0xcafe).balance, 3 ether, "taken out");
        checkStake(5, 0, 0, 0);

        // Nothing is left, and the others' stakes stay.
        expectWithdrawal(key, OWNER, abi.encodeWithSelector(MemberStakes.StakeLocked.selector, 0));
        announce(key, true);
        vm.warp(block.timestamp + 7 days);
        expectWithdrawal(key, OWNER, abi.encodeWithSelector(MemberStakes.ZeroAmount.selector));
        checkEqual(address(stakes).balance, 4 * STAKE_WEI, "of the others");
    }

    function announce(bytes32 key, bool leaves) internal {
        vm.prank(OWNER);
        stakes.announceWithdrawal(key, leaves);
    }

    function expectWithdrawal(bytes32 key, address to, bytes memory reason) internal {
        vm.prank(OWNER);
        if (reason.length != 0) vm.expectRevert(reason);
        stakes.withdraw(key, to);
    }

    /// @dev An epoch is over with its last number, and stays so.
    function testAStakeLeavesLongAfterItsEpoch() public {
        registerEpoch(101, 3, 3); // binds 1 to 3 once more
        BatchHeader[] memory headers = run(101);
        headers[100].epoch = 2;
        postRunOf(headers, 100);
        announce(keyHash(4), true);
        bytes32 key = keyHash(1);
        vm.prank(OWNER);
        vm.expectRevert(abi.encodeWithSelector(MemberStakes.EpochNotOver.selector, 2, 101));
        stakes.announceWithdrawal(key, true);
        vm.mockCall(
            address(inbox),
            abi.encodeCall(inbox.head, ()),
            abi.encode(uint64(102), uint64(0), uint64(0), uint64(0))
        );
        announce(key, true);
    }

    /// @dev Posts the first `count` of the headers.
    function postRunOf(BatchHeader[] memory headers, uint256 count) internal {
        BatchHeader[] memory first = new BatchHeader[](count);
        for (uint256 i = 0; i < count; i++) {
            first[i] = headers[i];
        }
        postRun(first);
    }

    function testMoreThanTheLeastStakeServesToo() public {
        deposit(5, STAKE_WEI + 1);
        serve(5, 200);
        registerEpoch(200, 5, 3);
        checkStake(5, STAKE_WEI + 1, 2, 0);
    }

    function testSignaturesAreOfTheDeploymentsDomain() public view {
        checkEqual(stakes.domainSeparator(), inbox.domainSeparator(), "domain");
    }
}
