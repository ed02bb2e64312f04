// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FinalHint, HintEvidence, PlaintextProof } from "../src/HintEvidence.sol";
import { Envelopes } from "../src/libraries/Envelopes.sol";
import { HintFixture } from "./helpers/HintFixture.sol";
import { MockHintVerifier } from "./helpers/HintMocks.sol";

contract PlaintextReaderTest is HintFixture {
    uint32 internal constant KEYED = 129;
    uint32 internal constant MALFORMED = 1;
    uint32 internal constant SKIPPED = 2;

    function setUp() public {
        vm.roll(1_000_000);
        deployHints();
        fund(PUBLISHER, 10 * BOND);
    }

    function sortOf(uint256, uint256 index) internal pure override returns (uint256) {
        // Forced transactions are short; most of the batch is there only to fill a chunk.
        return index == KEYED ? 0 : index == MALFORMED ? 4 : index == SKIPPED ? 6 : 7;
    }

    function sample() internal returns (Built memory) {
        uint256[] memory counts = new uint256[](3);
        (counts[0], counts[1], counts[2]) = (0, 3, 131);
        return buildRun(7, counts, 0);
    }

    function plaintext(Built memory b, uint32 index) internal pure returns (PlaintextProof memory) {
        return plaintextOf(challengeOf(b, rightEntries(b), 2, index));
    }

    function finalHint(Built memory b, uint32 index) internal pure returns (FinalHint memory) {
        return finalHintOf(challengeOf(b, rightEntries(b), 2, index));
    }

    function makeFinal(Built memory b) internal {
        uint64 id = post(PUBLISHER, b.run, encode(rightEntries(b)));
        vm.roll(block.number + CHALLENGE_WINDOW);
        hints.finalize(id);
    }

    function testProvePlaintext() public {
        Built memory b = sample();
        PlaintextProof memory p = plaintext(b, KEYED);
        (bytes32 id, bytes memory message) = hints.provePlaintext(p);
        checkEqual(id, b.items[2][KEYED].id, "id");
        checkEqual(message, caller.decode(p.item).e, "what the mock verifier says");

        p.key = bytes16("another");
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.WrongKey.selector));
        hints.provePlaintext(p);
        p = plaintext(b, MALFORMED);
        p.key = bytes16("any");
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.WrongKey.selector));
        hints.provePlaintext(p);
        p = plaintext(b, KEYED);
        verifier.fail(MockHintVerifier.Failure.Reverts);
        vm.expectRevert(abi.encodeWithSelector(MockHintVerifier.MockRevert.selector));
        hints.provePlaintext(p);
    }

    function testReadPlaintext() public {
        Built memory b = sample();
        PlaintextProof memory p = plaintext(b, KEYED);
        FinalHint memory h = finalHint(b, KEYED);
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.RunNotFinal.selector, 9));
        hints.readPlaintext(p, h);
        makeFinal(b);
        // The check of the key is not needed any more.
        verifier.fail(MockHintVerifier.Failure.Reverts);
        (bytes32 id, bytes memory message) = hints.readPlaintext(p, h);
        checkEqual(id, b.items[2][KEYED].id, "id");
        bytes32 ad = caller.decode(p.item).ad;
        checkEqual(message, caller.decrypt(p.key, ad, caller.decode(p.item).e), "message");

        p.key = bytes16("another");
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.WrongKey.selector));
        hints.readPlaintext(p, h);
        p = plaintext(b, MALFORMED);
        h = finalHint(b, MALFORMED);
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.WrongKey.selector));
        hints.readPlaintext(p, h);
    }

    function testOnlyAcceptedItemsAreRead() public {
        Built memory b = sample();
        PlaintextProof memory p = plaintext(b, SKIPPED);
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.NotAccepted.selector, p.code));
        hints.provePlaintext(p);
        p.code = 0;
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.ItemNotInBatch.selector, 9, SKIPPED));
        hints.provePlaintext(p);
    }

    /// @dev Even if a committee certified another id for the item.
    function testIdIsTheItems() public {
        Built memory b = sample();
        bytes32 id = b.items[2][KEYED].id;
        b.items[2][KEYED].id = bytes32("another");
        b.headers[2].envelopeRoot = rootOfItems(b.items[2]);
        tell(b);
        PlaintextProof memory p = plaintext(b, KEYED);
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.WrongEnvelope.selector, bytes32("another"), id));
        hints.provePlaintext(p);
    }

    /// @dev The hint of one envelope does not open another one.
    function testHintOfAnotherPlaceIsRefused() public {
        Built memory b = sample();
        makeFinal(b);
        PlaintextProof memory p = plaintext(b, KEYED);
        FinalHint memory h = finalHint(b, 0);
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.ChunkNotFinal.selector, 9));
        hints.readPlaintext(p, h);
        h = finalHint(b, KEYED);
        h.chunk[0] ^= 0x01;
        vm.expectRevert(abi.encodeWithSelector(HintEvidence.ChunkNotFinal.selector, 9));
        hints.readPlaintext(p, h);
    }

    function testFuzzTamperedProofsRevert(uint256 field, uint256 by, bool read) public {
        Built memory b = sample();
        makeFinal(b);
        PlaintextProof memory p = plaintext(b, KEYED);
        FinalHint memory h = finalHint(b, KEYED);
        field %= read ? 18 : 13;
        uint32 small = uint32(bound(by, 1, 1_000));
        bytes32 change = bytes32(uint256(small));
        if (field == 0) p.run.first -= uint64(small % 7) + 1;
        else if (field == 1) p.run.last += small;
        else if (field == 2) p.run.postedAt += small;
        else if (field == 3) p.run.headerRoot ^= change;
        else if (field == 4) p.header.epoch += small;
        else if (field == 5) p.headerProof[0] ^= change;
        else if (field == 6) p.index += small;
        else if (field == 7) p.code ^= uint8(1 + by % 255);
        else if (field == 8) p.id ^= change;
        else if (field == 9) p.itemProof[by % p.itemProof.length] ^= change;
        else if (field == 10) p.item[by % p.item.length] ^= bytes1(uint8(1 + by % 255));
        else if (field == 11) p.item = bytes.concat(p.item, hex"00");
        else if (field == 12) p.key ^= bytes16(uint128(small));
        else if (field == 13) h.chunk[by % h.chunk.length] ^= bytes1(uint8(1 + by % 255));
        else if (field == 14) h.leafIndex += small;
        else if (field == 15) h.leafCount += small;
        else if (field == 16) h.releases ^= change;
        else h.chunkProof[by % h.chunkProof.length] ^= change;
        vm.expectPartialRevert(tamperedReason(field, read));
        if (read) hints.readPlaintext(p, h);
        else hints.provePlaintext(p);
    }

    function tamperedReason(uint256 field, bool read) private pure returns (bytes4) {
        if (field == 1 && read) return HintEvidence.RunNotFinal.selector;
        if (field < 6) return HintEvidence.HeaderNotPosted.selector;
        if (field == 7) return HintEvidence.NotAccepted.selector;
        if (field < 12) return HintEvidence.ItemNotInBatch.selector;
        return field == 12 ? HintEvidence.WrongKey.selector : HintEvidence.ChunkNotFinal.selector;
    }

    function testItemsOfAnyOtherLengthAreNoEnvelopes() public {
        Built memory b = sample();
        b.items[2][KEYED].data = "no envelope";
        b.headers[2].envelopeRoot = rootOfItems(b.items[2]);
        tell(b);
        PlaintextProof memory p = plaintext(b, KEYED);
        vm.expectRevert(abi.encodeWithSelector(Envelopes.BadEnvelopeLength.selector, 11));
        hints.provePlaintext(p);
    }
}
