// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { FeeVault } from "../../src/FeeVault.sol";
import { IBlindedInbox, RunReference, Timing } from "../../src/interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "../../src/interfaces/ICommitteeRegistry.sol";
import { BatchHeader } from "../../src/libraries/BatchHeaders.sol";
import { FeeLedger } from "../../src/libraries/FeeLedger.sol";
import { Symbolic } from "./Symbolic.sol";

/// @dev An inbox and registry that take every header for posted, and the head for any.
contract AnyInbox {
    Timing private given;
    uint64 private origin;
    bytes32 public headHash;

    constructor(Timing memory timing_) {
        given = timing_;
    }

    function set(uint64 origin_, bytes32 headHash_) external {
        (origin, headHash) = (origin_, headHash_);
    }

    function inbox() external view returns (address) {
        return address(this);
    }

    function epochNotice() external pure returns (uint32) {
        return 50_400;
    }

    function timing() external view returns (Timing memory) {
        return given;
    }

    function head() external view returns (uint64, uint64, uint64, uint64) {
        return (1, 1, origin, 0);
    }

    function verifyHeader(BatchHeader calldata header, RunReference calldata, bytes32[] calldata)
        external
        pure
        returns (bool, bytes32)
    {
        return (true, header.parentHash);
    }
}

/// @dev Claims and exits of any account by any posted ledger, which has no other account: what the proofs of larger ones
/// are worth is proved for the library.
contract FeeVaultProofs is Symbolic {
    /// @dev An account under a header, and when its proof is shown.
    struct Shown {
        address payer;
        uint128 balance;
        uint128 withdrawn;
        BatchHeader header;
        RunReference run;
        uint64 l1Block;
    }

    AnyInbox internal inbox = new AnyInbox(timing());
    FeeVault internal vault =
        new FeeVault(IBlindedInbox(address(inbox)), ICommitteeRegistry(address(inbox)), 7_200);

    function setUp() public {
        anyState(address(vault));
    }

    function proofOf(Shown memory shown) internal returns (FeeVault.AccountProof memory proof) {
        address payer = shown.payer;
        vm.assume(payer != address(vault) && payer != address(this) && payer != address(inbox));
        vm.assume(shown.balance < MAX_WEI / 2 && shown.withdrawn < MAX_WEI / 2);
        vm.roll(shown.l1Block);
        proof.payer = payer;
        proof.balance = shown.balance;
        proof.withdrawn = shown.withdrawn;
        proof.siblings = new bytes32[](0);
        proof.header = shown.header;
        proof.run = shown.run;
        proof.headerProof = new bytes32[](0);
    }

    function pay(address payer, bytes memory call) internal returns (bool done, uint256 amount) {
        uint256 before = vault.paid(payer);
        uint256 total = vault.totalPaid();
        vm.deal(payer, 0);
        vm.deal(address(vault), MAX_WEI);
        (done,) = address(vault).call(call);
        amount = payer.balance;
        assert(address(vault).balance == MAX_WEI - amount);
        assert(vault.paid(payer) == before + amount && vault.totalPaid() == total + amount);
        assert(done == (amount != 0));
    }

    /// @dev A claim pays what brings the payer's sum up to `withdrawn`, once it is old enough, and nothing to anybody else.
    function check_AClaimPaysTheDifference(Shown memory shown, address other) public {
        vm.assume(other != shown.payer);
        uint256 before = vault.paid(shown.payer);
        uint256 others = vault.paid(other);
        (bool done, uint256 amount) = pay(shown.payer, abi.encodeCall(vault.claim, (proofOf(shown))));
        assert(vault.paid(other) == others);
        if (!done) return;
        assert(vault.paid(shown.payer) == shown.withdrawn && amount == shown.withdrawn - before);
        assert(shown.l1Block >= uint256(shown.run.postedAt) + 7_200);
        bytes32 key = FeeLedger.accountKey(shown.payer);
        assert(shown.header.feeLedgerRoot == FeeLedger.accountLeaf(key, shown.balance, shown.withdrawn));
    }

    /// @dev An exit brings it up to no more than `withdrawn` and what was requested of the balance, by the head alone, when
    /// the delay is over and the rollup processed none of the requests.
    function check_AnExitPaysWhatWasRequested(Shown memory shown, address other, bytes32 headHash) public {
        vm.assume(other != shown.payer);
        uint256 others = vault.paid(other);
        (uint128 requested, uint64 firstBlock, uint64 lastBlock) = vault.pending(shown.payer);
        inbox.set(shown.header.l1OriginNumber, headHash);
        (bool done,) = pay(shown.payer, abi.encodeCall(vault.exit, (proofOf(shown))));
        assert(vault.paid(other) == others);
        if (!done) return;
        uint256 moved = requested < shown.balance ? requested : shown.balance;
        assert(vault.paid(shown.payer) == shown.withdrawn + moved);
        assert(shown.header.parentHash == headHash && firstBlock != 0);
        assert(shown.l1Block >= uint256(lastBlock) + 21_600);
        assert(shown.header.l1OriginNumber < firstBlock && shown.header.l1OriginNumber < lastBlock);
    }
}
