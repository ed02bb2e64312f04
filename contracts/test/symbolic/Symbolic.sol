// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { Test } from "../helpers/Test.sol";

/// @notice The cheat code of Halmos that these properties use.
interface Svm {
    function enableSymbolicStorage(address target) external;
}

/// @notice Properties that Halmos proves for all arguments, and with `anyState` for all storage as well: what holds after
/// one call from any state that it held in holds after any number of calls. Functions that begin with `check_`; an
/// `assert` that can fail is a counterexample, a revert is a path that ends. Forge compiles them and runs none.
abstract contract Symbolic is Test {
    Svm internal constant svm = Svm(address(uint160(uint256(keccak256("svm cheat code")))));

    /// @dev More ether and more seconds than there will be.
    uint256 internal constant MAX_WEI = 1 << 96;
    uint256 internal constant MAX_TIME = 1 << 48;

    /// @dev Forgets what is in the storage of `target`: it may be anything.
    function anyState(address target) internal {
        svm.enableSymbolicStorage(target);
    }

    function timing() internal pure returns (Timing memory) {
        return Timing({
            postingDeadline: 7_200,
            forcedDelay: 300,
            answerWindow: 7_200,
            hintDeadline: 7_200,
            challengeWindow: 7_200,
            withdrawalDelay: 21_600,
            maxOriginAgeSeconds: 14_400
        });
    }
}

/// @dev What SequencerBond asks of the CommitteeRegistry, where the key never changes. It is no whole registry: whoever
/// calls anything else gets a revert.
contract OneSequencer {
    address private immutable sequencer;

    constructor(address sequencer_) {
        sequencer = sequencer_;
    }

    function sequencerAt(uint64) external view returns (address) {
        return sequencer;
    }

    function sequencerUntil(address asked) external view returns (uint64) {
        return asked == sequencer ? type(uint64).max : 0;
    }
}
