// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BlindedInbox } from "../../src/BlindedInbox.sol";

/// @dev Refuses ether.
contract Unpayable {
    function claim(BlindedInbox inbox) external {
        inbox.claimReward();
    }
}
