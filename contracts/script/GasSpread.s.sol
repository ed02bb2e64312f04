// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { HintVerifier } from "../src/HintVerifier.sol";
import { GtDoor } from "../test/Gt.t.sol";
import { SessionKeysDoor } from "../test/HintVerifier.t.sol";

/// @notice The cheat codes that this script uses.
interface SpreadVm {
    struct Gas {
        uint64 gasLimit;
        uint64 gasTotalUsed;
        uint64 gasMemoryUsed;
        int64 gasRefunded;
        uint64 gasRemaining;
    }

    function lastCallGas() external view returns (Gas memory);
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function readFile(string calldata path) external view returns (string memory);
}

/// @notice How far the gas of judging a hint spreads with the exponent k: `scripts/contracts gas-spread`.
contract GasSpread {
    SpreadVm private constant VM = SpreadVm(address(uint160(uint256(keccak256("hevm cheat code")))));
    /// @dev |x|, see `GtPower`.
    uint256 private constant BASE = 0xd201000000010000;
    /// @dev Ciphertexts, and bytes of the message of each.
    uint256 private constant CIPHERTEXTS = 200;
    uint256 private constant MESSAGE_BYTES = 300;
    /// @dev Everything is drawn from this.
    uint256 private constant SEED = 1;

    HintVerifier private immutable VERIFIER = new HintVerifier();
    SessionKeysDoor private immutable KEYS = new SessionKeysDoor();
    GtDoor private immutable GT = new GtDoor();

    struct Ciphertext {
        bytes32 ad;
        bytes c;
        bytes16 d;
        bytes e;
        bytes16 key;
    }

    /// @notice `HintVerifier` says false of the key that the ciphertext was made with: mend the verifier first.
    error RightKeyRefused();

    /// @notice Not below |x|: mend `fullest`.
    error NotADigit(uint256 digit);

    /// @dev Shown by forge under this name.
    event log_named_uint(string key, uint256 val);

    /// @notice Draws the ciphertexts, judges the right key of each, and reports the gas of the calls.
    function run() external {
        bytes memory ek = VM.parseJsonBytes(VM.readFile("../testing/vectors/b4-full.json"), ".ek");
        (uint256 least, uint256 most, uint256 sum) = (type(uint256).max, 0, 0);
        uint256 besidePower = 0;
        for (uint256 i = 0; i < CIPHERTEXTS; i++) {
            (uint256 gas, uint256 power) = judge(i, ek);
            if (gas < least) least = gas;
            if (gas > most) most = gas;
            if (gas - power > besidePower) besidePower = gas - power;
            sum += gas;
        }
        GT.power(ek, fullest());
        uint256 fullestPower = VM.lastCallGas().gasTotalUsed;
        emit log_named_uint("seed", SEED);
        emit log_named_uint("ciphertexts", CIPHERTEXTS);
        emit log_named_uint("bytes of each message", MESSAGE_BYTES);
        emit log_named_uint("HintVerifier.verify, least", least);
        emit log_named_uint("HintVerifier.verify, average", sum / CIPHERTEXTS);
        emit log_named_uint("HintVerifier.verify, most", most);
        emit log_named_uint(
            "with the power to the fullest k in place of the drawn one", besidePower + fullestPower
        );
    }

    /// @dev Gas of `verify` for the `index`-th ciphertext, and of the power in it when it is made alone.
    function judge(uint256 index, bytes memory ek) private view returns (uint256 gas, uint256 power) {
        Ciphertext memory drawn;
        drawn.ad = keccak256(abi.encode(SEED, index, "ad"));
        drawn.key = bytes16(keccak256(abi.encode(SEED, index, "key")));
        bytes memory message = new bytes(MESSAGE_BYTES);
        for (uint256 i = 0; i < MESSAGE_BYTES; i++) {
            message[i] = bytes1(keccak256(abi.encode(SEED, index, i)));
        }
        uint256 k = KEYS.randomness(drawn.ad, drawn.key, message);
        drawn.c = KEYS.header(k);
        drawn.e = KEYS.open(drawn.ad, message, drawn.key);
        bytes memory z = GT.power(ek, k);
        power = VM.lastCallGas().gasTotalUsed;
        drawn.d = drawn.key ^ KEYS.mask(z);
        gas = verify(drawn, ek);
    }

    function verify(Ciphertext memory drawn, bytes memory ek) private view returns (uint256) {
        (bool ok,) = VERIFIER.verify(drawn.ad, drawn.c, drawn.d, drawn.e, drawn.key, ek);
        require(ok, RightKeyRefused());
        return VM.lastCallGas().gasTotalUsed;
    }

    /// @dev An exponent that asks for as much as any could: each of its four digits to the base |x| has 64 for its
    /// highest place, so all squares are made, and below it at every fifth place a negative digit, all eight of them.
    function fullest() private pure returns (uint256 k) {
        uint256 digit = 1 << 64;
        for (uint256 i = 0; i < 12; i++) {
            digit -= (2 * ((i + 4) % 8) + 1) << (5 * i + 4);
        }
        require(digit < BASE, NotADigit(digit));
        for (uint256 j = 0; j < 4; j++) {
            k = k * BASE + digit;
        }
    }
}
