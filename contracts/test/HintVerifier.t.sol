// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { HintVerifier } from "../src/HintVerifier.sol";
import { GtResidues } from "../src/libraries/GtResidues.sol";
import { SessionKeys } from "../src/libraries/SessionKeys.sol";
import { GtDoor } from "./Gt.t.sol";
import { SlowField } from "./helpers/SlowField.sol";
import { Test } from "./helpers/Test.sol";

/// @dev Doors to the library.
contract SessionKeysDoor {
    function open(bytes32 ad, bytes calldata e, bytes16 key) external view returns (bytes memory) {
        return SessionKeys.open(ad, e, key);
    }

    function randomness(bytes32 ad, bytes16 key, bytes memory message) external view returns (uint256) {
        return SessionKeys.randomness(ad, key, message);
    }

    function header(uint256 k) external view returns (bytes memory) {
        (uint256 high, uint256 low) = SessionKeys.header(k);
        return abi.encodePacked(uint128(high), low);
    }

    function mask(bytes memory z) external view returns (bytes16) {
        return SessionKeys.mask(z);
    }
}

contract HintVerifierTest is Test {
    struct Hint {
        bytes32 ad;
        bytes c;
        bytes16 d;
        bytes e;
        bytes16 key;
    }

    string internal constant FOLDER = "../testing/vectors/";
    HintVerifier internal verifier = new HintVerifier();
    SessionKeysDoor internal keys = new SessionKeysDoor();
    GtDoor internal gt = new GtDoor();

    function entry(string memory list, uint256 index) internal pure returns (string memory) {
        return string.concat(".", list, "[", vm.toString(index), "]");
    }

    /// @dev The conformance files write no `0x`, which the parser insists on for nothing at all.
    function read(string memory json, string memory path) internal pure returns (bytes memory) {
        if (bytes(vm.parseJsonString(json, path)).length == 0) return "";
        return vm.parseJsonBytes(json, path);
    }

    /// @dev The first 16 bytes.
    function short(bytes memory value) internal pure returns (bytes16) {
        check(value.length == 16, "16 bytes");
        return bytes16(value);
    }

    /// @dev The ciphertext at `path` of a conformance file, without a key.
    function ciphertext(string memory json, string memory path) internal pure returns (Hint memory hint) {
        hint.ad = bytes32(read(json, string.concat(path, ".ad")));
        hint.c = read(json, string.concat(path, ".c"));
        hint.d = short(read(json, string.concat(path, ".d")));
        hint.e = read(json, string.concat(path, ".e"));
    }

    function verify(Hint memory hint, bytes memory ek) internal view returns (bool ok, bytes memory message) {
        return verifier.verify(hint.ad, hint.c, hint.d, hint.e, hint.key, ek);
    }

    function checkFalse(Hint memory hint, bytes memory ek, string memory what) internal view {
        (bool ok, bytes memory message) = verify(hint, ek);
        check(!ok && message.length == 0, what);
    }

    // Conformance

    function testConformanceB4Full() public {
        checkEqual(checkConformance("b4-full.json"), 4, "well-formed ciphertexts");
    }

    function testConformanceB4PartialMalformed() public {
        checkEqual(checkConformance("b4-partial-malformed.json"), 2, "well-formed ciphertexts");
    }

    function testConformanceB8N7() public {
        checkEqual(checkConformance("b8-n7.json"), 6, "well-formed ciphertexts");
    }

    /// @dev Every hint opens its own ciphertext and no other; no key of the file opens a malformed one.
    function checkConformance(string memory name) internal returns (uint256 wellFormed) {
        string memory json = vm.readFile(string.concat(FOLDER, name));
        bytes memory ek = read(json, ".ek");
        uint256 count = 0;
        while (vm.keyExistsJson(json, entry("ciphertexts", count))) count++;
        bytes16[] memory hints = new bytes16[](count);
        bool[] memory malformed = new bool[](count);
        for (uint256 i = 0; i < count; i++) {
            string memory path = entry("ciphertexts", i);
            malformed[i] = vm.parseJsonBool(json, string.concat(path, ".malformed"));
            if (malformed[i]) continue;
            hints[i] = short(read(json, string.concat(path, ".hint")));
            wellFormed++;
        }
        for (uint256 i = 0; i < count; i++) {
            string memory path = entry("ciphertexts", i);
            Hint memory hint = ciphertext(json, path);
            for (uint256 j = 0; j < count; j++) {
                if (malformed[j] || (!malformed[i] && i == j)) continue;
                hint.key = hints[j];
                if (hint.e.length == 0) continue;
                checkFalse(hint, ek, "another's key");
            }
            hint.key = hints[i];
            if (malformed[i]) checkFalse(hint, ek, "malformed, zero key");
            else checkOpens(json, path, hint, ek);
        }
    }

    /// @dev What the vector says in every step: message, header, ek^k; and the whole.
    function checkOpens(string memory json, string memory path, Hint memory hint, bytes memory ek) internal {
        bytes memory expected = read(json, string.concat(path, ".message"));
        bytes memory message = keys.open(hint.ad, hint.e, hint.key);
        checkEqual(message, expected, "message");
        uint256 k = keys.randomness(hint.ad, hint.key, message);
        checkEqual(keys.header(k), hint.c, "[k]");
        bytes memory z = gt.power(ek, k);
        checkEqual(z, read(json, string.concat(path, ".z")), "ek^k");
        check(keys.mask(z) ^ hint.key == hint.d, "masked key");
        if (hint.e.length == 0) {
            // No envelope carries an empty message.
            vm.expectRevert(abi.encodeWithSelector(HintVerifier.WrongMessageLength.selector, 0));
            verifier.verify(hint.ad, hint.c, hint.d, hint.e, hint.key, ek);
            return;
        }
        bool ok;
        (ok, message) = verify(hint, ek);
        check(ok, "honest hint");
        checkEqual(message, expected, "message");
    }

    function testConformanceRejects() public {
        string memory json = vm.readFile(string.concat(FOLDER, "rejects-b4-partial-malformed.json"));
        string memory base = vm.readFile(string.concat(FOLDER, "b4-partial-malformed.json"));
        bytes memory ek = read(base, ".ek");
        Hint memory honest = ciphertext(base, entry("ciphertexts", 0));
        honest.key = short(read(base, ".ciphertexts[0].hint"));
        uint256 tried = 0;
        for (uint256 i = 0; vm.keyExistsJson(json, entry("hints", i)); i++) {
            string memory path = entry("hints", i);
            uint256 index = vm.parseJsonUint(json, string.concat(path, ".index"));
            Hint memory hint = ciphertext(base, entry("ciphertexts", index));
            bytes memory key = read(json, string.concat(path, ".hint"));
            if (key.length != 16) continue; // not even of the type
            hint.key = short(key);
            checkFalse(hint, ek, "refused hint");
            tried++;
        }
        for (uint256 i = 0; vm.keyExistsJson(json, entry("g1", i)); i++) {
            Hint memory hint = honest;
            hint.c = read(json, string.concat(entry("g1", i), ".bytes"));
            if (hint.c.length == 48) {
                checkFalse(hint, ek, "refused header");
            } else {
                vm.expectRevert(
                    abi.encodeWithSelector(HintVerifier.WrongHeaderLength.selector, hint.c.length)
                );
                verifier.verify(hint.ad, hint.c, hint.d, hint.e, hint.key, ek);
            }
            tried++;
        }
        check(tried >= 14, "entries tried");
    }

    // The twin of the Rust code

    /// @dev Every hint of the file opens its message, and not when damaged; a few are enough here to see which field.
    function testTwinOfTheRustCode() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "hints/verifier.json"));
        bytes memory ek = read(json, ".encryptionKey");
        uint256 count = 0;
        for (; vm.keyExistsJson(json, entry("cases", count)); count++) {
            string memory path = entry("cases", count);
            Hint memory hint = full(json, path);
            (bool ok, bytes memory message) = verify(hint, ek);
            check(ok, "honest hint");
            checkEqual(
                sha256(message), vm.parseJsonBytes32(json, string.concat(path, ".messageSha256")), "message"
            );
            for (uint256 i = 0; i < 2; i++) {
                string memory change = string.concat(path, entry("damages", i));
                checkFalse(damaged(json, change, full(json, path)), ek, "damaged hint");
            }
        }
        checkEqual(count, 67, "cases");
    }

    function full(string memory json, string memory path) internal pure returns (Hint memory hint) {
        hint = ciphertext(json, path);
        hint.key = short(read(json, string.concat(path, ".key")));
    }

    function damaged(string memory json, string memory change, Hint memory hint)
        internal
        pure
        returns (Hint memory)
    {
        bytes32 field = keccak256(bytes(vm.parseJsonString(json, string.concat(change, ".field"))));
        uint256 index = vm.parseJsonUint(json, string.concat(change, ".index"));
        bytes1 pattern = bytes1(uint8(vm.parseJsonUint(json, string.concat(change, ".xor"))));
        if (field == keccak256("ad")) hint.ad ^= bytes32(pattern) >> (8 * index);
        else if (field == keccak256("c")) hint.c[index] ^= pattern;
        else if (field == keccak256("d")) hint.d ^= bytes16(pattern) >> (8 * index);
        else if (field == keccak256("e")) hint.e[index] ^= pattern;
        else if (field == keccak256("key")) hint.key ^= bytes16(pattern) >> (8 * index);
        else check(false, "unknown field");
        return hint;
    }

    /// @dev The case of the file whose message has this length.
    function ofLength(uint256 length) internal view returns (Hint memory hint, bytes memory ek) {
        string memory json = vm.readFile(string.concat(FOLDER, "hints/verifier.json"));
        ek = read(json, ".encryptionKey");
        uint256 index = length == 256 ? 64 : length == 512 ? 65 : 66;
        hint = full(json, entry("cases", index));
        checkEqual(hint.e.length, length, "length");
    }

    /// @dev A ciphertext of our own making.
    function encrypt(bytes memory message, bytes16 key, bytes32 ad, bytes memory ek)
        internal
        view
        returns (Hint memory hint)
    {
        uint256 k = keys.randomness(ad, key, message);
        hint = Hint({
            ad: ad,
            c: keys.header(k),
            d: key ^ keys.mask(gt.power(ek, k)),
            e: keys.open(ad, message, key),
            key: key
        });
    }

    function testFuzzOwnCiphertexts(bytes memory message, bytes16 key, bytes32 ad) public view {
        if (message.length == 0) message = hex"00";
        (, bytes memory ek) = ofLength(256);
        Hint memory hint = encrypt(message, key, ad, ek);
        (bool ok, bytes memory opened) = verify(hint, ek);
        check(ok, "own ciphertext");
        checkEqual(opened, message, "message");
        hint.d ^= bytes16(uint128(1));
        checkFalse(hint, ek, "another D");
    }

    // What is refused by an error

    function testLengths() public {
        (Hint memory hint, bytes memory ek) = ofLength(256);
        bytes memory c = bytes.concat(hint.c, hex"00");
        vm.expectRevert(abi.encodeWithSelector(HintVerifier.WrongHeaderLength.selector, 49));
        verifier.verify(hint.ad, c, hint.d, hint.e, hint.key, ek);
        vm.expectRevert(abi.encodeWithSelector(HintVerifier.WrongHeaderLength.selector, 0));
        verifier.verify(hint.ad, "", hint.d, hint.e, hint.key, ek);
        vm.expectRevert(abi.encodeWithSelector(HintVerifier.WrongMessageLength.selector, 0));
        verifier.verify(hint.ad, hint.c, hint.d, "", hint.key, ek);
        bytes memory e = new bytes(32_769);
        vm.expectRevert(abi.encodeWithSelector(HintVerifier.WrongMessageLength.selector, 32_769));
        verifier.verify(hint.ad, hint.c, hint.d, e, hint.key, ek);
        bytes memory longer = bytes.concat(ek, hex"00");
        vm.expectRevert(abi.encodeWithSelector(HintVerifier.WrongEncryptionKeyLength.selector, 577));
        verifier.verify(hint.ad, hint.c, hint.d, hint.e, hint.key, longer);
        vm.expectRevert(abi.encodeWithSelector(HintVerifier.WrongEncryptionKeyLength.selector, 0));
        verifier.verify(hint.ad, hint.c, hint.d, hint.e, hint.key, "");
    }

    /// @dev Also where the header alone would already give false.
    function testEncryptionKeyNotReduced() public {
        (Hint memory hint, bytes memory ek) = ofLength(256);
        hint.c[5] ^= 0x01;
        for (uint256 i = 0; i < 12; i++) {
            bytes memory wrong = bytes.concat(ek);
            wrong[48 * i] = 0x1b;
            vm.expectRevert(abi.encodeWithSelector(GtResidues.CoefficientNotReduced.selector, i));
            verifier.verify(hint.ad, hint.c, hint.d, hint.e, hint.key, wrong);
        }
    }

    /// @dev With too little gas there is no answer, whichever step it runs out in.
    function testStarvedCallsRevert() public view {
        (Hint memory hint, bytes memory ek) = ofLength(256);
        bytes memory call = abi.encodeCall(verifier.verify, (hint.ad, hint.c, hint.d, hint.e, hint.key, ek));
        uint256 answers = 0;
        for (uint256 gas = 5_000; gas < 1_800_000; gas += gas < 60_000 ? 150 : 7_000) {
            (bool done, bytes memory result) = address(verifier).staticcall{ gas: gas }(call);
            if (!done) continue;
            (bool ok,) = abi.decode(result, (bool, bytes));
            check(ok, "a starved call said false");
            answers++;
        }
        check(answers != 0, "never enough gas");
    }

    function testHeaderOfTheIdentityIsItsOwnEncoding() public view {
        checkEqual(keys.header(0), bytes.concat(hex"c0", new bytes(47)), "[0]");
        bytes memory one = keys.header(1);
        bytes memory minusOne = keys.header(SessionKeys.ORDER - 1);
        checkEqual(uint8(one[0]), 0x97, "the generator's flags");
        checkEqual(uint8(minusOne[0]), 0xb7, "its negative's flags");
        for (uint256 i = 1; i < 48; i++) {
            check(one[i] == minusOne[i], "the same x");
        }
    }

    // Gas

    function testGas300() public {
        (, bytes memory ek) = ofLength(256);
        bytes memory message = new bytes(300);
        for (uint256 i = 0; i < 300; i++) {
            message[i] = bytes1(uint8(i));
        }
        Hint memory hint = encrypt(message, bytes16(keccak256("key")), keccak256("ad"), ek);
        verify(hint, ek);
        uint256 gas = vm.snapshotGasLastCall("HintVerifier.verify, 300 bytes");
        check(gas < 1_500_000, "above 1.5 million gas");
        hint.c[47] ^= 0x01;
        verify(hint, ek);
        vm.snapshotGasLastCall("HintVerifier.verify, 300 bytes, wrong header");
    }

    function testGas256() public {
        (Hint memory hint, bytes memory ek) = ofLength(256);
        verify(hint, ek);
        vm.snapshotGasLastCall("HintVerifier.verify, 256 bytes");
    }

    function testGas512() public {
        (Hint memory hint, bytes memory ek) = ofLength(512);
        verify(hint, ek);
        vm.snapshotGasLastCall("HintVerifier.verify, 512 bytes");
    }

    function testGasLargest() public {
        (Hint memory hint, bytes memory ek) = ofLength(32_768);
        verify(hint, ek);
        uint256 gas = vm.snapshotGasLastCall("HintVerifier.verify, 32,768 bytes");
        // 21,000 and 16 gas for each byte of the call (4 + 6·32 + lengths and padding + 48 + 32,768 + 576); the floor
        // of 40 gas a byte is lower than that. EIP-7825: 2^24 for one transaction.
        check(21_000 + 16 * 33_800 + gas < 1 << 24, "above the cap of a transaction");
    }

    function testCodeFitsEip170() public view {
        check(address(verifier).code.length <= 24_576, "code too long");
    }
}
