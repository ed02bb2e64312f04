// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { EnvelopeParts, Envelopes } from "../src/libraries/Envelopes.sol";
import { MessageStream } from "../src/libraries/MessageStream.sol";
import { HintLibraries } from "./helpers/HintLibraries.sol";
import { Test } from "./helpers/Test.sol";

contract EnvelopesTest is Test {
    string internal constant FOLDER = "../testing/vectors/";
    HintLibraries internal caller = new HintLibraries();

    function path(string memory list, uint256 index) internal pure returns (string memory) {
        return string.concat(".", list, "[", vm.toString(index), "]");
    }

    function testVectors() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "protocol/envelopes.json"));
        uint256 count = 0;
        for (; vm.keyExistsJson(json, path("envelopes", count)); count++) {
            string memory here = path("envelopes", count);
            bytes memory item = vm.parseJsonBytes(json, string.concat(here, ".encoded"));
            EnvelopeParts memory parts = caller.decode(item);
            checkEqual(parts.ad, vm.parseJsonBytes32(json, string.concat(here, ".ad")), "ad");
            checkEqual(parts.c, vm.parseJsonBytes(json, string.concat(here, ".c")), "c");
            checkEqual(abi.encodePacked(parts.d), vm.parseJsonBytes(json, string.concat(here, ".d")), "d");
            checkEqual(parts.e, vm.parseJsonBytes(json, string.concat(here, ".e")), "e");
            checkEqual(caller.id(item), vm.parseJsonBytes32(json, string.concat(here, ".id")), "id");
        }
        check(count >= 2, "envelopes");
    }

    function sample() internal view returns (bytes memory) {
        string memory json = vm.readFile(string.concat(FOLDER, "protocol/envelopes.json"));
        return vm.parseJsonBytes(json, ".envelopes[0].encoded");
    }

    function testRefusesOtherVersions() public {
        bytes memory item = sample();
        for (uint8 version = 1; version <= 3; version += 2) {
            item[0] = bytes1(version);
            vm.expectRevert(abi.encodeWithSelector(Envelopes.BadEnvelopeVersion.selector, version));
            caller.decode(item);
        }
    }

    function testRefusesLengthsOfNoEnvelope() public {
        vm.expectRevert(abi.encodeWithSelector(Envelopes.BadEnvelopeLength.selector, 0));
        caller.decode("");
        bytes memory item = new bytes(382);
        vm.expectRevert(abi.encodeWithSelector(Envelopes.BadEnvelopeLength.selector, 382));
        caller.decode(item);
        item = new bytes(383);
        item[0] = 0x02;
        checkEqual(caller.decode(item).e.length, 0, "an empty E");

        item = new bytes(383 + 32_768);
        (item[0], item[381]) = (0x02, 0x80);
        checkEqual(caller.decode(item).e.length, 32_768, "the longest E");
        item = new bytes(383 + 32_769);
        (item[0], item[381], item[382]) = (0x02, 0x80, 0x01);
        vm.expectRevert(abi.encodeWithSelector(Envelopes.BadEnvelopeLength.selector, 383 + 32_769));
        caller.decode(item);
    }

    function testRefusesBytesTooManyOrTooFew() public {
        bytes memory item = sample();
        uint256 e = item.length - 383;
        for (uint256 more = 1; more <= 1000; more += 999) {
            bytes memory longer = bytes.concat(item, new bytes(more));
            vm.expectRevert(abi.encodeWithSelector(Envelopes.BadCiphertextLength.selector, e, e + more));
            caller.decode(longer);
        }
        assembly ("memory-safe") {
            mstore(item, sub(mload(item), 1))
        }
        vm.expectRevert(abi.encodeWithSelector(Envelopes.BadCiphertextLength.selector, e, e - 1));
        caller.decode(item);
    }

    /// @dev Every byte of the header changes `ad` and id; C, D and E the id only; proof and signature neither.
    function testFuzzWhatIsBound(uint256 position, uint8 flip) public view {
        bytes memory item = sample();
        position = bound(position, 1, item.length - 1);
        flip = uint8(bound(flip, 1, 255));
        EnvelopeParts memory before = caller.decode(item);
        bytes32 id = caller.id(item);
        item[position] ^= bytes1(flip);
        try caller.decode(item) returns (EnvelopeParts memory parts) {
            check((parts.ad != before.ad) == (position < 170), "ad");
            bool inId = position < 234 || position >= 383;
            check((caller.id(item) != id) == inId, "id");
        } catch {
            check(position >= 379 && position < 383, "only the length can fail");
        }
    }

    // The stream

    function hexAt(string memory json, string memory key) internal pure returns (bytes memory) {
        return vm.parseBytes(string.concat("0x", vm.parseJsonString(json, key)));
    }

    function testStreamOpensTheSchemesVectors() public view {
        string[3] memory files = ["b4-full.json", "b4-partial-malformed.json", "b8-n7.json"];
        uint256 opened = 0;
        for (uint256 f = 0; f < files.length; f++) {
            string memory json = vm.readFile(string.concat(FOLDER, files[f]));
            for (uint256 i = 0; vm.keyExistsJson(json, path("ciphertexts", i)); i++) {
                string memory here = path("ciphertexts", i);
                if (vm.parseJsonBool(json, string.concat(here, ".malformed"))) continue;
                bytes memory message = caller.decrypt(
                    bytes16(hexAt(json, string.concat(here, ".hint"))),
                    bytes32(hexAt(json, string.concat(here, ".ad"))),
                    hexAt(json, string.concat(here, ".e"))
                );
                checkEqual(message, hexAt(json, string.concat(here, ".message")), "message");
                opened++;
            }
        }
        check(opened >= 12, "ciphertexts");
    }

    function testFuzzStream(bytes16 key, bytes32 ad, bytes calldata e) public view {
        bytes memory expected = new bytes(e.length);
        for (uint256 i = 0; i < e.length; i++) {
            bytes32 block_ = sha256(abi.encodePacked("BLINDFOLD-V1-STREAM", key, bytes16(ad), uint32(i / 32)));
            expected[i] = e[i] ^ block_[i % 32];
        }
        checkEqual(caller.decrypt(key, ad, e), expected, "message");
    }

    function testStreamWithoutGasIsAnError() public {
        bytes memory e = new bytes(32_768);
        (bool done,) = address(caller).call{ gas: 200_000 }(
            abi.encodeCall(HintLibraries.decrypt, (bytes16("key"), bytes32("ad"), e))
        );
        check(!done, "half a message");
        caller.decrypt(bytes16("key"), bytes32("ad"), e);
        vm.snapshotGasLastCall("MessageStream.decrypt, 32,768 bytes");
    }

    /// @dev What a last block wrote past the message's end does not leave the contract as its padding.
    function testPaddingOfAMessageIsZero() public view {
        (bool done, bytes memory given) = address(caller)
            .staticcall(abi.encodeCall(HintLibraries.decrypt, (bytes16("key"), bytes32("ad"), new bytes(33))));
        check(done && given.length == 128, "33 bytes take two words");
        uint256 last;
        assembly ("memory-safe") {
            last := mload(add(given, 128))
        }
        check(last != 0 && last << 8 == 0, "one byte, and zeros");
    }

    function testAHashThatFailsIsAnError() public {
        vm.mockCallRevert(address(2), "", "");
        vm.expectRevert(abi.encodeWithSelector(MessageStream.HashFailed.selector));
        caller.decrypt(bytes16("key"), bytes32("ad"), new bytes(96));
    }
}
