// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { IBlindedInbox, RunReference, Timing } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { BatchHeader } from "./libraries/BatchHeaders.sol";
import { FeeLedger } from "./libraries/FeeLedger.sol";

/// @title The ether behind the fee accounts
/// @notice A deposit credits `payer` in the fee ledger of the rollup once the L1 block that holds it is at or below
/// the origin of a batch (docs/protocol.md, "Fee ledger"). The ledger is kept by the batch headers, not here; ether
/// goes back in one of two ways:
///
/// 1. **With the rollup's help.** `requestWithdrawal` asks; the first header whose L1 origin is at or above the
///    request's block moves min(amount, balance) from the account's balance to what it has `withdrawn` in all; `claim`
///    with a proof of the account against any header posted `claimDelay` blocks ago or earlier pays what is withdrawn
///    and not yet paid.
/// 2. **Without it.** If no such header is posted for `withdrawalDelay` blocks after the payer's last request, `exit`
///    pays the same from the account as the last posted header left it.
///
/// Nothing is paid twice, whatever the order of these calls: both pay the difference between what the account is
/// entitled to in all and `paid`, which only grows. After an exit the rollup still finds the requests on L1, and the
/// first header that is certified then must process them before it spends anything: `withdrawalDelay` is longer than
/// the inbox's posting deadline, so no header with an origin before the last request can be posted any more, and the
/// headers that L1 makes itself leave the ledger as it is. So that header's `withdrawn` is not below what was paid.
///
/// The vault believes the roots of certified headers, so whoever names the committee could take the ether of all. Who
/// does not trust a new committee has the time to leave: its first header can be posted `epochNotice` blocks after it was
/// registered, which is longer than `withdrawalDelay`, and pays out another `claimDelay` later. No ether enters before
/// the first committee is there, for that one needs no notice.
///
/// What this does not give: a committee that is in office and of which the threshold lies could take the ether of all. A deposit above the origin of the last posted header is in no ledger yet: only a
/// header that credits it brings it back. Surcharges that are held for batches without final hints wait likewise.
/// @dev No owner. Storage: `totalDeposited` slot 0, `totalPaid` slot 1, `pending` (one slot for a payer) slot 2,
/// `paid` (one slot for a payer) slot 3; `inbox`, `registry` and the delays stand in the code.
contract FeeVault {
    /// @notice All deposits together stay below this, so that no sum of balances in the ledger overflows 128 bits.
    uint256 public constant TOTAL_LIMIT_WEI = 1 << 127;

    /// @notice What a payer requested since the rollup last processed a request of it, in one slot.
    struct Request {
        /// Sum of the amounts in wei; stops at the largest value, which is more than any balance.
        uint128 amount;
        /// L1 block of the first; 0 when there never was one.
        uint64 firstBlock;
        /// L1 block of the last.
        uint64 lastBlock;
    }

    /// @notice A fee account as a posted header commits to it.
    struct AccountProof {
        /// Whose account it is, and who is paid.
        address payer;
        /// What it can spend, in wei.
        uint128 balance;
        /// What ever left it towards this contract, in wei.
        uint128 withdrawn;
        /// Siblings from the ledger's root down to its leaf.
        bytes32[] siblings;
        /// The header whose `feeLedgerRoot` commits to the ledger.
        BatchHeader header;
        /// The run that the header was posted in.
        RunReference run;
        /// Siblings from the header's leaf up to the run's root.
        bytes32[] headerProof;
    }

    /// @notice Where headers are posted.
    IBlindedInbox public immutable inbox;
    /// @notice The committees that certify them.
    ICommitteeRegistry public immutable registry;
    /// @notice How many L1 blocks after a header's posting its ledger pays out.
    uint32 public immutable claimDelay;
    /// @notice How many L1 blocks after its last request an account can be left without the rollup's doing.
    uint32 public immutable withdrawalDelay;

    /// @notice Sum of all deposits, in wei.
    uint256 public totalDeposited;
    /// @notice Sum of all that was paid out, in wei; the vault holds the difference.
    uint256 public totalPaid;
    /// @notice A payer's requests that `exit` would count.
    mapping(address payer => Request request) public pending;
    /// @notice What a payer was paid in all, in wei: to be compared with `withdrawn` in its account.
    mapping(address payer => uint256 amount) public paid;

    /// @notice `from` paid `amount` wei into the fee account of `payer`.
    event Deposited(address indexed payer, address indexed from, uint256 amount);
    /// @notice The rollup shall move min(`amount`, balance) of the account of `payer` to what it has withdrawn.
    event WithdrawalRequested(address indexed payer, uint128 amount);
    /// @notice `payer` was paid `amount` wei that the ledger of header `number` shows as withdrawn.
    event Claimed(address indexed payer, uint256 amount, uint64 indexed number);
    /// @notice `payer` was paid `amount` wei out of the ledger of the last header, `number`, without the rollup's doing.
    event Exited(address indexed payer, uint256 amount, uint64 indexed number);

    /// @notice The registry was made for another inbox.
    error ForeignRegistry(address inbox);
    /// @notice No time to leave: `withdrawalDelay` is not below the registry's `epochNotice`, or not above the inbox's
    /// `postingDeadline` and `claimDelay` together, or there is no `claimDelay`.
    error BadDelays(uint32 withdrawalDelay, uint32 epochNotice, uint32 claimDelay);
    /// @notice No committee is registered yet, so nobody knows whom this deposit would trust.
    error NoEpoch();
    /// @notice The header's ledger pays out from this L1 block on.
    error ClaimTooEarly(uint256 from);
    /// @notice The account to credit is the zero address.
    error ZeroPayer();
    /// @notice No ether came with the call, or nothing is requested.
    error ZeroAmount();
    /// @notice The sum of all deposits would reach `TOTAL_LIMIT_WEI`.
    error TotalTooLarge(uint256 total);
    /// @notice The header of the proof is in no posted run: take a posted one, and its run's number, block and root.
    error HeaderNotPosted(bytes32 headerHash);
    /// @notice The header's ledger has no such account: take every field from the ledger after just that header.
    error NotInLedger(bytes32 feeLedgerRoot);
    /// @notice All that this proof entitles to was paid: if a request waits, prove against a header with an L1 origin
    /// at or above its block.
    error NothingToPay(uint256 entitled, uint256 paid);
    /// @notice The payer never requested a withdrawal: call `requestWithdrawal`, then wait for `withdrawalDelay` blocks.
    error NoRequest(address payer);
    /// @notice The rollup still has time to process the last request: try from block `exitBlock` on.
    error DelayNotOver(uint256 exitBlock);
    /// @notice An exit is from the ledger of the last posted header only: prove against that one.
    error NotHead(bytes32 given, bytes32 head);
    /// @notice The rollup has processed every request (its L1 origin is at or above the last one's block): call `claim`.
    error AlreadyProcessed(uint64 l1OriginNumber, uint64 lastBlock);
    /// @notice The rollup stopped with its L1 origin between the first request and the last, so their sum no longer
    /// tells what is still owed: call `claim` for what was processed, then `requestWithdrawal` anew for the rest and
    /// wait again.
    error PartlyProcessed(uint64 l1OriginNumber, uint64 firstBlock, uint64 lastBlock);
    /// @notice The payer did not accept the ether.
    error TransferFailed(address payer);

    /// @param inbox_ Where headers are posted; it must exist, since its timing is read here once and for all.
    /// @param registry_ The CommitteeRegistry made for the same inbox.
    /// @param claimDelay_ How many L1 blocks after a header's posting its ledger pays out.
    constructor(IBlindedInbox inbox_, ICommitteeRegistry registry_, uint32 claimDelay_) {
        if (registry_.inbox() != address(inbox_)) revert ForeignRegistry(registry_.inbox());
        Timing memory timing = inbox_.timing();
        uint32 notice = registry_.epochNotice();
        // An exit is from a header posted longer than `claimDelay` ago, by the second comparison: its origin is older
        // than `withdrawalDelay`, and it was posted `postingDeadline` after that at the latest.
        bool timeToLeave = timing.withdrawalDelay < notice && claimDelay_ != 0
            && timing.withdrawalDelay > uint256(timing.postingDeadline) + claimDelay_;
        if (!timeToLeave) revert BadDelays(timing.withdrawalDelay, notice, claimDelay_);
        inbox = inbox_;
        registry = registry_;
        claimDelay = claimDelay_;
        withdrawalDelay = timing.withdrawalDelay;
    }

    /// @notice Credits the fee account of `payer` with the ether sent. Anyone may pay for anyone (E-2).
    function deposit(address payer) external payable {
        if (payer == address(0)) revert ZeroPayer();
        if (msg.value == 0) revert ZeroAmount();
        uint256 total = totalDeposited + msg.value;
        // Epochs are never taken back, so the first deposit answers for all.
        if (total == msg.value && registry.epochCount() == 0) revert NoEpoch();
        if (total >= TOTAL_LIMIT_WEI) revert TotalTooLarge(total);
        totalDeposited = total;
        emit Deposited(payer, msg.sender, msg.value);
    }

    /// @notice Asks the rollup to move `amount` wei, or the whole balance if that is less, out of the caller's fee
    /// account; `type(uint128).max` asks for everything. A request cannot be taken back, and starts the delay of all
    /// requests that wait anew.
    /// @dev While the rollup has processed none of the waiting requests they add up. From the first that it processed,
    /// the remembered sum would promise too much, so it is dropped and this request starts afresh: the rollup still
    /// processes any dropped one, `exit` no longer counts it, and the caller names here what it wants to leave with.
    function requestWithdrawal(uint128 amount) external {
        if (amount == 0) revert ZeroAmount();
        Request memory request = pending[msg.sender];
        (,, uint64 origin,) = inbox.head();
        if (origin < request.firstBlock) {
            uint128 space = type(uint128).max - request.amount;
            request.amount += amount < space ? amount : space;
        } else {
            request.amount = amount;
            request.firstBlock = uint64(block.number);
        }
        request.lastBlock = uint64(block.number);
        pending[msg.sender] = request;
        emit WithdrawalRequested(msg.sender, amount);
    }

    /// @notice Pays the account's payer what the ledger shows as withdrawn and was not yet paid. Anyone may call, with
    /// a proof against any header that was posted `claimDelay` ago; the latest shows the most (E-3).
    function claim(AccountProof calldata proof) external {
        uint256 from = uint256(proof.run.postedAt) + claimDelay;
        if (block.number < from) revert ClaimTooEarly(from);
        verifyAccount(proof);
        uint256 amount = record(proof.payer, proof.withdrawn);
        emit Claimed(proof.payer, amount, proof.header.number);
        send(proof.payer, amount);
    }

    /// @notice Pays the account's payer, besides what the ledger shows as withdrawn, what it requested and still has in
    /// its balance, when the rollup processed none of the waiting requests for `withdrawalDelay` blocks after the last.
    /// Anyone may call, with a proof against the last posted header.
    /// @dev The requests stay remembered: the rollup has yet to process them, and a further one adds to them.
    function exit(AccountProof calldata proof) external {
        Request memory request = pending[proof.payer];
        if (request.firstBlock == 0) revert NoRequest(proof.payer);
        uint256 exitBlock = uint256(request.lastBlock) + withdrawalDelay;
        if (block.number < exitBlock) revert DelayNotOver(exitBlock);

        bytes32 headerHash = verifyAccount(proof);
        bytes32 head = inbox.headHash();
        if (headerHash != head) revert NotHead(headerHash, head);
        uint64 origin = proof.header.l1OriginNumber;
        if (origin >= request.lastBlock) revert AlreadyProcessed(origin, request.lastBlock);
        if (origin >= request.firstBlock) {
            revert PartlyProcessed(origin, request.firstBlock, request.lastBlock);
        }

        uint128 moved = request.amount < proof.balance ? request.amount : proof.balance;
        uint256 amount = record(proof.payer, uint256(proof.withdrawn) + moved);
        emit Exited(proof.payer, amount, proof.header.number);
        send(proof.payer, amount);
    }

    /// @dev Reverts unless the account stands in the ledger of a posted header; that header's hash.
    function verifyAccount(AccountProof calldata proof) private view returns (bytes32 headerHash) {
        bool posted;
        (posted, headerHash) = inbox.verifyHeader(proof.header, proof.run, proof.headerProof);
        if (!posted) revert HeaderNotPosted(headerHash);
        bytes32 root = proof.header.feeLedgerRoot;
        if (!FeeLedger.verify(root, proof.payer, proof.balance, proof.withdrawn, proof.siblings)) {
            revert NotInLedger(root);
        }
    }

    /// @dev Counts as paid, before any ether moves, all that `payer` is entitled to; what of it was not yet paid.
    function record(address payer, uint256 entitled) private returns (uint256 amount) {
        uint256 before = paid[payer];
        if (entitled <= before) revert NothingToPay(entitled, before);
        amount = entitled - before;
        paid[payer] = entitled;
        totalPaid += amount;
    }

    function send(address payer, uint256 amount) private {
        (bool sent,) = payer.call{ value: amount }("");
        if (!sent) revert TransferFailed(payer);
    }
}
