// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { CommitteeRegistry } from "../src/CommitteeRegistry.sol";
import { RegistrySchedule } from "../src/RegistrySchedule.sol";
import { RegistrySettings } from "../src/interfaces/ICommitteeRegistry.sol";
import { IMemberStakes } from "../src/interfaces/IMemberStakes.sol";
import { Bls12381 } from "../src/libraries/Bls12381.sol";
import { BlsSigner } from "./helpers/BlsSigner.sol";
import { Deployment } from "./helpers/Deployment.sol";

/// @dev Binds whatever it is told.
contract BoundStakes is IMemberStakes {
    struct Binding {
        bytes32 keyHash;
        uint64 epoch;
        uint64 lastNumber;
    }

    Binding[] public bindings;

    function bind(bytes32 keyHash, uint64 epoch, uint64 lastNumber) external {
        bindings.push(Binding({ keyHash: keyHash, epoch: epoch, lastNumber: lastNumber }));
    }

    function count() external view returns (uint256) {
        return bindings.length;
    }
}

contract CommitteeRegistryTest is Deployment {
    bytes32 internal constant HEADER_HASH = keccak256("header");

    event EpochRegistered(
        uint64 indexed epoch,
        uint64 firstNumber,
        uint64 lastNumber,
        uint64 countsFrom,
        bytes32 encryptionKeyHash,
        bytes32 parametersHash
    );

    function setUp() public {
        deployContracts();
    }

    function testConstructor() public {
        checkEqual(registry.governor(), GOVERNOR, "governor");
        checkEqual(registry.inbox(), address(inbox), "inbox");
        checkEqual(registry.domainSeparator(), inbox.domainSeparator(), "domain");
        checkEqual(registry.epochNotice(), EPOCH_NOTICE, "notice");
        checkEqual(registry.switchLead(), SWITCH_LEAD, "lead");
        checkEqual(registry.minMembers(), 1, "least n");
        checkEqual(registry.minThreshold(), 1, "least t");
        RegistrySettings memory settings = defaultSettings();
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.ZeroAddress.selector));
        new CommitteeRegistry(address(0), address(1), address(2), anyKey, memberStakes(), settings);
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.ZeroAddress.selector));
        new CommitteeRegistry(address(1), address(0), address(2), anyKey, memberStakes(), settings);
        for (uint256 i = 0; i < 4; i++) {
            settings = defaultSettings();
            if (i == 0) settings.epochNotice = 0;
            if (i == 1) settings.switchLead = 0;
            if (i == 2) settings.minThreshold = 0;
            if (i == 3) settings.minThreshold = settings.minMembers + 1;
            vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.BadSettings.selector));
            new CommitteeRegistry(address(1), address(1), address(2), anyKey, memberStakes(), settings);
        }
    }

    function testRegisterAndReadBack() public {
        CommitteeRegistry.Member[] memory members = committee(4);
        CommitteeRegistry.EpochParameters memory given = parameters(EPOCH_LAST, 3);
        vm.expectEmit(true, true, true, true, address(registry));
        emit EpochRegistered(
            1, 1, EPOCH_LAST, uint64(block.number), sha256(given.encryptionKey), given.parametersHash
        );
        vm.prank(GOVERNOR);
        uint64 epoch = registry.registerEpoch(given, members);
        checkEqual(epoch, 1, "epoch");
        checkEqual(registry.epochCount(), 1, "count");

        CommitteeRegistry.Epoch memory read = registry.getEpoch(1);
        checkEqual(read.epoch, 1, "epoch");
        checkEqual(read.firstNumber, 1, "first");
        checkEqual(read.lastNumber, EPOCH_LAST, "last");
        checkEqual(read.countsFrom, block.number, "the first counts at once");
        checkEqual(read.continues, 0, "a new key");
        checkEqual(read.h1, given.h1, "h1");
        checkEqual(registry.h1(1), given.h1, "h1");
        checkEqual(registry.revision(), 1, "revision");
        checkEqual(read.maxBatch, 512, "B");
        checkEqual(read.threshold, 3, "t");
        checkEqual(read.parametersHash, given.parametersHash, "parameters");
        checkEqual(read.encryptionKeyHash, sha256(given.encryptionKey), "ek hash");
        checkEqual(bytes(read.parametersLocation), bytes(given.parametersLocation), "location");
        checkEqual(read.memberKeys.length, 4, "n");
        for (uint256 i = 0; i < 4; i++) {
            checkEqual(read.memberKeys[i], members[i].key, "key");
            checkEqual(registry.memberKey(1, uint16(i + 1)), members[i].key, "alone");
        }
        checkEqual(registry.encryptionKey(1), given.encryptionKey, "ek");
    }

    function testLargestCommittee() public {
        CommitteeRegistry.Member[] memory members = committee(64);
        CommitteeRegistry.EpochParameters memory given = parameters(EPOCH_LAST, 43);
        vm.prank(GOVERNOR);
        registry.registerEpoch(given, members);
        uint64 signers = (1 << 43) - 1;
        bytes memory signature = aggregate(1, 7, HEADER_HASH, signers);
        registry.verifyCertificate(1, 7, HEADER_HASH, signers, signature);
        vm.snapshotGasLastCall("CommitteeRegistry.verifyCertificate, 43 of 64");
        signers = type(uint64).max;
        signature = aggregate(1, 7, HEADER_HASH, signers);
        registry.verifyCertificate(1, 7, HEADER_HASH, signers, signature);
    }

    function testEpochsAreContiguous() public {
        registerEpoch(100, 1, 1);
        registerEpoch(101, 4, 3);
        registerEpoch(5_000, 2, 2);
        checkEqual(registry.getEpoch(2).firstNumber, 101, "first of 2");
        checkEqual(registry.getEpoch(3).firstNumber, 102, "first of 3");
        checkEqual(registry.epochOf(1), 1, "1");
        checkEqual(registry.epochOf(100), 1, "100");
        checkEqual(registry.epochOf(101), 2, "101");
        checkEqual(registry.epochOf(102), 3, "102");
        checkEqual(registry.epochOf(5_000), 3, "5000");
        checkEqual(registry.servingEpoch(101), 2, "101");
        checkEqual(registry.servingEpoch(5_001), 3, "the last one serves on");
        checkEqual(registry.revision(), 3, "one for each");
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registry.epochOf(5_001);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registry.epochOf(0);
    }

    function testManyEpochs() public {
        for (uint64 epoch = 1; epoch <= 9; epoch++) {
            registerEpoch(10 * epoch, 1, 1);
        }
        for (uint64 number = 1; number <= 90; number++) {
            checkEqual(registry.epochOf(number), (number + 9) / 10, "epoch");
        }
    }

    function testNobodysSignatureIsNoAcknowledgement() public {
        registerEpoch(EPOCH_LAST, 4, 3);
        bytes memory signature = aggregate(1, 7, HEADER_HASH, 0x7);
        check(registry.acknowledged(1, 7, HEADER_HASH, 0x7, signature), "three");
        check(!registry.acknowledged(1, 7, HEADER_HASH, 0x17, signature), "a fifth member");
        check(!registry.acknowledged(1, 7, HEADER_HASH, 0x7, bytes.concat(signature, hex"00")), "a byte more");
        // The sum of no keys verifies the sum of no signatures.
        check(!registry.acknowledged(1, 7, HEADER_HASH, 0, new bytes(128)), "nobody");
    }

    function testFuzzEpochOf(uint8[5] memory lengths, uint16 number) public {
        uint64 last = 0;
        for (uint256 i = 0; i < lengths.length; i++) {
            last += uint64(lengths[i]) + 1;
            registerEpoch(last, 1, 1);
        }
        uint64 asked = uint64(bound(number, 1, last));
        uint64 epoch = registry.epochOf(asked);
        CommitteeRegistry.Epoch memory found = registry.getEpoch(epoch);
        check(found.firstNumber <= asked && asked <= found.lastNumber, "in range");
    }

    function testNoEpochYet() public {
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registry.epochOf(1);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 1));
        registry.getEpoch(1);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registry.encryptionKey(0);
    }

    function testFuzzOnlyGovernor(address caller) public {
        vm.assume(caller != GOVERNOR);
        CommitteeRegistry.Member[] memory members = committee(1);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(RegistrySchedule.NotGovernor.selector, caller));
        registry.registerEpoch(parameters(1, 1), members);
    }

    function expectRefusal(
        CommitteeRegistry.EpochParameters memory given,
        CommitteeRegistry.Member[] memory members,
        bytes memory reason
    ) internal {
        vm.prank(GOVERNOR);
        vm.expectRevert(reason);
        registry.registerEpoch(given, members);
        checkEqual(registry.epochCount(), 0, "count");
    }

    function testBadParameters() public {
        CommitteeRegistry.Member[] memory members = committee(4);
        CommitteeRegistry.EpochParameters memory given = parameters(0, 3);
        expectRefusal(given, members, abi.encodeWithSelector(CommitteeRegistry.EmptyEpoch.selector, 1, 0));
        given = parameters(10, 3);
        given.maxBatch = 0;
        expectRefusal(given, members, abi.encodeWithSelector(CommitteeRegistry.ZeroMaxBatch.selector));
        given = parameters(10, 3);
        for (uint256 size = 575; size <= 577; size += 2) {
            given.encryptionKey = new bytes(size);
            expectRefusal(
                given,
                members,
                abi.encodeWithSelector(CommitteeRegistry.BadEncryptionKeyLength.selector, size)
            );
        }
        given = parameters(10, 3);
        given.encryptionKey[0] = 0xff; // what stands for no element of GT here
        expectRefusal(given, members, abi.encodeWithSelector(CommitteeRegistry.BadEncryptionKey.selector));
        given = parameters(10, 3);
        given.h1 = new bytes(256); // the identity
        expectRefusal(given, members, abi.encodeWithSelector(CommitteeRegistry.BadH1.selector));
        for (uint256 size = 255; size <= 257; size += 2) {
            given.h1 = new bytes(size);
            given.h1[254] = 0x01;
            expectRefusal(given, members, abi.encodeWithSelector(CommitteeRegistry.BadH1.selector));
        }
        given.h1 = BlsSigner.outsideG2();
        expectRefusal(given, members, abi.encodePacked(Bls12381.InvalidPoint.selector));
        given = parameters(10, 3);
        given.parametersLocation = string(new bytes(513));
        expectRefusal(given, members, abi.encodeWithSelector(CommitteeRegistry.LocationTooLong.selector, 513));
        given.parametersLocation = string(new bytes(512));
        vm.prank(GOVERNOR);
        registry.registerEpoch(given, members);
    }

    function testBadThreshold() public {
        CommitteeRegistry.Member[] memory members = committee(4);
        for (uint16 threshold = 0; threshold <= 6; threshold++) {
            if (threshold == 3 || threshold == 4) continue;
            expectRefusal(
                parameters(10, threshold),
                members,
                abi.encodeWithSelector(CommitteeRegistry.BadThreshold.selector, threshold, 4)
            );
        }
    }

    function testBadMemberCount() public {
        CommitteeRegistry.Member[] memory members = new CommitteeRegistry.Member[](0);
        expectRefusal(
            parameters(10, 0), members, abi.encodeWithSelector(CommitteeRegistry.BadMemberCount.selector, 0)
        );
        members = new CommitteeRegistry.Member[](65);
        expectRefusal(
            parameters(10, 33), members, abi.encodeWithSelector(CommitteeRegistry.BadMemberCount.selector, 65)
        );
    }

    function testBadMember() public {
        CommitteeRegistry.Member[] memory members = committee(4);
        bytes memory key = members[2].key;
        members[2].key = new bytes(255);
        bytes memory reason = abi.encodeWithSelector(CommitteeRegistry.BadMemberEncoding.selector, 3);
        expectRefusal(parameters(10, 3), members, reason);
        members[2].key = key;
        members[2].possession = new bytes(129);
        expectRefusal(parameters(10, 3), members, reason);
        members = committee(4);
        members[3] = members[0];
        reason = abi.encodeWithSelector(CommitteeRegistry.DuplicateMember.selector, 4);
        expectRefusal(parameters(10, 3), members, reason);
    }

    function testBadProofOfPossession() public {
        bytes memory reason = abi.encodeWithSelector(CommitteeRegistry.BadProofOfPossession.selector, 2);
        CommitteeRegistry.Member[] memory members = committee(4);
        members[1].possession = members[2].possession; // another's
        expectRefusal(parameters(10, 3), members, reason);

        uint256 secret = memberSecret(2); // the tag of ordinary signatures
        members[1].possession =
            BlsSigner.sign(secret, Bls12381.SIGNATURE_TAG, BlsSigner.compressed(members[1].key));
        expectRefusal(parameters(10, 3), members, reason);

        members[1].key = new bytes(256); // the identity has no secret worth proving
        members[1].possession = new bytes(128);
        expectRefusal(parameters(10, 3), members, reason);
    }

    function testRogueKeyRefused() public {
        // Member 2 claims key(9) − key(member 1), so that it alone could sign "for both" with 9.
        CommitteeRegistry.Member[] memory members = committee(2);
        uint256 difference = addmod(9, BlsSigner.ORDER - memberSecret(1), BlsSigner.ORDER);
        members[1].key = BlsSigner.key(difference);
        members[1].possession =
            BlsSigner.sign(9, Bls12381.POSSESSION_TAG, BlsSigner.compressed(members[1].key));
        bytes memory reason = abi.encodeWithSelector(CommitteeRegistry.BadProofOfPossession.selector, 2);
        expectRefusal(parameters(10, 2), members, reason);
    }

    function testMemberKeyOutsideTheSubgroup() public {
        // Additions would take it; the pairing does not.
        CommitteeRegistry.Member[] memory members = committee(1);
        members[0].key = BlsSigner.outsideG2();
        (bool onCurve,) = address(0x0d).staticcall(bytes.concat(members[0].key, members[0].key));
        check(onCurve, "addition takes the point");
        expectRefusal(parameters(10, 1), members, abi.encodePacked(Bls12381.InvalidPoint.selector));
    }

    function testMemberKeyOffTheCurve() public {
        CommitteeRegistry.Member[] memory members = committee(1);
        members[0].key[255] ^= 0x01;
        expectRefusal(parameters(10, 1), members, abi.encodePacked(Bls12381.InvalidPoint.selector));
    }

    /// @dev A deployment's least committee (E-13).
    function testFewestMembersAndLeastThreshold() public {
        RegistrySettings memory settings = defaultSettings();
        (settings.minMembers, settings.minThreshold) = (4, 3);
        registry = newRegistry(address(inbox), anyKey, settings);
        expectRefusal(
            parameters(10, 3),
            committee(3),
            abi.encodeWithSelector(CommitteeRegistry.BadMemberCount.selector, 3)
        );
        settings.minThreshold = 4;
        registry = newRegistry(address(inbox), anyKey, settings);
        expectRefusal(
            parameters(10, 3),
            committee(4),
            abi.encodeWithSelector(CommitteeRegistry.BadThreshold.selector, 3, 4)
        );
        CommitteeRegistry.Member[] memory members = committee(4);
        vm.prank(GOVERNOR);
        registry.registerEpoch(parameters(10, 4), members);
    }

    /// @dev Numbers that L1 gave out in the last epoch's name are that one's; the next one begins behind them.
    function testAnEpochBeginsBehindTheHead() public {
        registerEpoch(10, 4, 3);
        CommitteeRegistry.Member[] memory members = committee(1);
        for (uint64 head = 10; head < 12; head++) {
            uint256 snapshot = vm.snapshotState();
            vm.mockCall(address(inbox), abi.encodeCall(inbox.head, ()), abi.encode(head, 0, 0, 0));
            vm.prank(GOVERNOR);
            vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.EmptyEpoch.selector, head + 1, head));
            registry.registerEpoch(parameters(head, 1), members);
            uint64 revision = registry.revision();
            vm.prank(GOVERNOR);
            registry.registerEpoch(parameters(head + 1, 1), members);
            (uint64 first, uint64 last) = registry.numbersOf(1);
            checkEqual(last, head, "last of 1");
            (first, last) = registry.numbersOf(2);
            checkEqual(first, head + 1, "first of 2");
            checkEqual(last, head + 1, "last of 2");
            checkEqual(registry.revision(), revision + (head == 10 ? 1 : 2), "an end more");
            vm.revertToState(snapshot);
        }
    }

    /// @dev What a member has at stake is bound to the epoch and its last number, member by member.
    function testEveryMembersStakeIsBound() public {
        BoundStakes bound = new BoundStakes();
        registry = new CommitteeRegistry(
            GOVERNOR, address(inbox), address(2), anyKey, IMemberStakes(bound), defaultSettings()
        );
        checkEqual(address(registry.stakes()), address(bound), "stakes");
        registerEpoch(10, 2, 2);
        registerEpoch(30, 1, 1);
        checkEqual(bound.count(), 3, "each once");
        for (uint256 i = 0; i < 3; i++) {
            (bytes32 keyHash, uint64 epoch, uint64 lastNumber) = bound.bindings(i);
            checkEqual(keyHash, keccak256(BlsSigner.key(memberSecret(i % 2 + 1))), "key");
            checkEqual(epoch, i / 2 + 1, "epoch");
            checkEqual(lastNumber, i < 2 ? 10 : 30, "last number");
        }
    }

    /// @dev Another committee that holds shares of the same key (E-12).
    function testAnEpochContinuesAKey() public {
        registerEpoch(10, 4, 3);
        CommitteeRegistry.EpochParameters memory given = parameters(20, 2);
        bytes memory encryptionKey = given.encryptionKey;
        given.continues = 1;
        (given.encryptionKey, given.h1) = ("", "");
        given.parametersHash = keccak256("of the new shares");
        CommitteeRegistry.Member[] memory members = committee(2);
        vm.prank(GOVERNOR);
        registry.registerEpoch(given, members);
        CommitteeRegistry.Epoch memory read = registry.getEpoch(2);
        checkEqual(read.continues, 1, "continues");
        checkEqual(read.encryptionKeyHash, sha256(encryptionKey), "ek hash");
        checkEqual(read.parametersHash, given.parametersHash, "parameters");
        checkEqual(registry.encryptionKey(2), encryptionKey, "ek");
        checkEqual(registry.h1(2), registry.h1(1), "h1");
    }

    function testBadContinuations() public {
        registerEpoch(10, 4, 3);
        CommitteeRegistry.Member[] memory members = committee(2);
        for (uint256 i = 0; i < 5; i++) {
            CommitteeRegistry.EpochParameters memory given = parameters(20, 2);
            (bytes memory key, bytes memory h1) = (given.encryptionKey, given.h1);
            given.continues = 1;
            (given.encryptionKey, given.h1) = ("", "");
            if (i == 0) given.encryptionKey = key;
            if (i == 1) given.h1 = h1;
            if (i == 2) given.maxBatch = 511; // one τ for one B
            if (i == 3) given.continues = 2; // itself
            if (i == 4) given.continues = 3;
            vm.prank(GOVERNOR);
            vm.expectRevert(
                abi.encodeWithSelector(CommitteeRegistry.BadContinuation.selector, given.continues)
            );
            registry.registerEpoch(given, members);
        }
    }

    function testNumbersOfAnEpoch() public {
        registerEpoch(10, 4, 3);
        registerEpoch(30, 4, 3);
        (uint64 first, uint64 last) = registry.numbersOf(1);
        checkEqual(first, 1, "first of 1");
        checkEqual(last, 10, "last of 1");
        (first, last) = registry.numbersOf(2);
        checkEqual(first, 11, "first of 2");
        checkEqual(last, 30, "last of 2");
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registry.numbersOf(0);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 3));
        registry.numbersOf(3);
    }

    function testCertificate() public {
        registerEpoch(EPOCH_LAST, 4, 3);
        bytes memory signature = aggregate(1, 17, HEADER_HASH, 0xb);
        checkEqual(registry.verifyCertificate(1, 17, HEADER_HASH, 0xb, signature), 1, "first number");
        vm.snapshotGasLastCall("CommitteeRegistry.verifyCertificate, 3 of 4");
        signature = aggregate(1, 17, HEADER_HASH, 0xf);
        registry.verifyCertificate(1, 17, HEADER_HASH, 0xf, signature);
    }

    function testCertificateRefusals() public {
        registerEpoch(10, 4, 3);
        registerEpoch(20, 4, 3);
        bytes memory signature = aggregate(1, 7, HEADER_HASH, 7);

        bytes memory early = aggregate(2, 17, HEADER_HASH, 7);
        uint256 countsFrom = block.number + EPOCH_NOTICE;
        vm.roll(countsFrom - 1);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.EpochNotInForce.selector, 2, countsFrom));
        registry.verifyCertificate(2, 17, HEADER_HASH, 7, early);
        vm.roll(countsFrom);
        registry.verifyCertificate(2, 17, HEADER_HASH, 7, early);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 0));
        registry.verifyCertificate(0, 7, HEADER_HASH, 7, signature);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownEpoch.selector, 3));
        registry.verifyCertificate(3, 7, HEADER_HASH, 7, signature);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.NumberOutsideEpoch.selector, 2, 7));
        registry.verifyCertificate(2, 7, HEADER_HASH, 7, signature);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.NumberOutsideEpoch.selector, 1, 11));
        registry.verifyCertificate(1, 11, HEADER_HASH, 7, signature);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.NumberOutsideEpoch.selector, 1, 0));
        registry.verifyCertificate(1, 0, HEADER_HASH, 7, signature);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.UnknownSigner.selector, 0x17));
        registry.verifyCertificate(1, 7, HEADER_HASH, 0x17, signature);
        vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.TooFewSigners.selector, 2, 3));
        registry.verifyCertificate(1, 7, HEADER_HASH, 3, signature);

        bytes memory bad = abi.encodeWithSelector(CommitteeRegistry.BadAggregateSignature.selector);
        vm.expectRevert(bad); // another number
        registry.verifyCertificate(1, 8, HEADER_HASH, 7, signature);
        vm.expectRevert(bad); // another header
        registry.verifyCertificate(1, 7, keccak256("other"), 7, signature);
        vm.expectRevert(bad); // another set
        registry.verifyCertificate(1, 7, HEADER_HASH, 0xf, signature);
        vm.expectRevert(bad); // the identity
        registry.verifyCertificate(1, 7, HEADER_HASH, 7, new bytes(128));
        vm.expectRevert(bad); // the compressed length
        registry.verifyCertificate(1, 7, HEADER_HASH, 7, new bytes(48));
    }

    function testFuzzCertificate(uint64 signers, uint64 claimed, bytes32 headerHash) public {
        registerEpoch(EPOCH_LAST, 6, 4);
        signers &= 0x3f;
        claimed &= 0x3f;
        bytes memory signature = aggregate(1, 5, headerHash, signers);
        uint256 count = 0;
        for (uint256 i = 0; i < 6; i++) {
            count += (claimed >> i) & 1;
        }
        if (count < 4) {
            vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.TooFewSigners.selector, count, 4));
        } else if (claimed != signers) {
            vm.expectRevert(abi.encodeWithSelector(CommitteeRegistry.BadAggregateSignature.selector));
        }
        registry.verifyCertificate(1, 5, headerHash, claimed, signature);
    }
}
