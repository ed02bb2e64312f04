// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { BatchHeader, BatchHeaders } from "./libraries/BatchHeaders.sol";
import { Domain } from "./libraries/Domain.sol";
import { MerkleTree } from "./libraries/MerkleTree.sol";
import { Secp256k1 } from "./libraries/Secp256k1.sol";

/// @notice What the inbox asks of the CommitteeRegistry.
interface ICommitteeRegistry {
    /// @notice The inbox this registry belongs to.
    function inbox() external view returns (address);

    /// @notice Reverts unless the certificate is good; the epoch's first number.
    function verifyCertificate(
        uint64 epoch,
        uint64 number,
        bytes32 headerHash,
        uint64 signers,
        bytes calldata signature
    ) external view returns (uint64 firstNumber);
}

/// @title Certified batch headers and the sequencer's bond
/// @notice Takes runs of certified headers in order. A certificate covers all ancestors, so a run needs only the one
/// of its last header; every header of a run is of that one's epoch, so exactly one committee certifies a number.
///
/// Storage: the head (number, times, hash) in two slots, and **one slot for a run**, whatever its length:
/// `runCommitment[last number] = keccak256(first ‖ last ‖ Merkle root of the run's header hashes)`. A contract that
/// needs a header, for its envelope root or fee-ledger root, takes it as calldata with its Merkle proof and calls
/// `verifyHeader`. So a further batch in a run costs calldata and hashing only, below 15,000 gas.
///
/// Data: the envelopes travel as calldata and are **not checked here**: nodes compare them with the envelope roots,
/// ignore bytes that do not match, and anyone may post them again. Runs and data are posted by top-level transactions
/// of plain accounts only, so a reader finds them in the input of the transaction that emitted the event.
/// @dev Nobody can take funds out but: the sequencer its own bond, after a delay; a reporter its reward.
contract BlindedInbox {
    using BatchHeaders for BatchHeader;

    /// @notice How long an announced withdrawal of the bond waits, open to slashing all the while.
    uint256 public constant WITHDRAWAL_DELAY_SECONDS = 7 days;

    /// @notice Certificate of a run's last header, which gives its epoch, number and header hash.
    struct Certificate {
        /// Bit j−1 is set for member j.
        uint64 signers;
        /// Aggregate BLS signature in G1, 128 bytes as in EIP-2537.
        bytes signature;
    }

    /// @notice The last posted header; all zero before the first.
    struct Head {
        uint64 number;
        uint64 timestampMs;
        uint64 l1OriginNumber;
        uint64 forcedCursor;
    }

    /// @notice A withdrawal of the bond that waits.
    struct Withdrawal {
        uint128 amount;
        uint64 unlocksAt;
    }

    /// @notice The committees.
    ICommitteeRegistry public immutable registry;
    /// @notice Whose signature stands under the headers.
    address public immutable sequencer;
    /// @notice Separator of the deployment's domain.
    bytes32 public immutable domainSeparator;

    /// @notice The last posted header.
    Head public head;
    /// @notice Its hash; the genesis hash before the first.
    bytes32 public headHash;
    /// @notice Commitment to the run that ends at a number; zero where none ends.
    mapping(uint64 lastNumber => bytes32 commitment) public runCommitment;

    /// @notice The sequencer's bond in wei.
    uint256 public bond;
    /// @notice The sequencer's announced withdrawal, if any.
    Withdrawal public withdrawal;
    /// @notice Numbers for which two signed headers were shown.
    mapping(uint64 number => bool) public equivocated;
    /// @notice Rewards that wait to be claimed.
    mapping(address reporter => uint256 amount) public rewards;

    /// @notice The run `firstNumber ..= lastNumber` was posted; `headerRoot` is the Merkle root of its header hashes.
    event Posted(uint64 indexed firstNumber, uint64 indexed lastNumber, bytes32 headHash, bytes32 headerRoot);
    /// @notice `poster` posted data for batches from `firstNumber` on; nobody has checked it.
    event DataPosted(uint64 indexed firstNumber, address indexed poster);
    /// @notice The bond grew.
    event BondDeposited(address indexed from, uint256 amount, uint256 bond);
    /// @notice The sequencer announced that it will take out `amount` (0 takes an announcement back).
    event BondWithdrawalAnnounced(uint256 amount, uint256 unlocksAt);
    /// @notice The sequencer took out `amount`.
    event BondWithdrawn(address indexed to, uint256 amount, uint256 bond);
    /// @notice The sequencer signed two headers for `number` and lost its bond.
    event Equivocation(
        uint64 indexed number,
        address indexed reporter,
        bytes32 firstHash,
        bytes32 secondHash,
        uint256 burnt,
        uint256 reward
    );
    /// @notice `reporter` took its reward.
    event RewardClaimed(address indexed reporter, uint256 amount);

    /// @notice The sequencer is the zero address.
    error ZeroSequencer();
    /// @notice The registry was made for another inbox.
    error ForeignRegistry(address inbox);
    /// @notice The call comes from a contract, or from an account that delegates to one.
    error NotTopLevel();
    /// @notice A run without headers.
    error EmptyRun();
    /// @notice A header of a version that this contract does not understand.
    error UnsupportedVersion(uint8 version);
    /// @notice The header does not follow the one before; the run may have been posted already.
    error WrongNumber(uint64 expected, uint64 given);
    /// @notice The header's parent is another header than the one before.
    error WrongParent(uint64 number, bytes32 expected, bytes32 given);
    /// @notice The header is not later than its parent.
    error TimeNotIncreasing(uint64 number);
    /// @notice The header's L1 origin is older than its parent's.
    error OriginDecreasing(uint64 number);
    /// @notice The header's cursor into the forced queue is behind its parent's.
    error ForcedCursorDecreasing(uint64 number);
    /// @notice The header names another epoch than the last one of the run: post the epochs' runs apart.
    error RunCrossesEpoch(uint64 number);
    /// @notice Data for a number that has not been posted.
    error NotPosted(uint64 number);
    /// @notice Only the sequencer may do this.
    error NotSequencer(address caller);
    /// @notice A deposit or claim of nothing.
    error ZeroAmount();
    /// @notice More than the bond.
    error AmountAboveBond(uint256 amount, uint256 bond);
    /// @notice No withdrawal was announced.
    error NoWithdrawalAnnounced();
    /// @notice The announced withdrawal still waits.
    error WithdrawalLocked(uint256 unlocksAt);
    /// @notice The two headers are of different numbers.
    error DifferentNumbers(uint64 first, uint64 second);
    /// @notice The two headers are the same.
    error SameHeader(bytes32 headerHash);
    /// @notice This number's equivocation was already punished.
    error AlreadySlashed(uint64 number);
    /// @notice Header `which` (1 or 2) does not bear the sequencer's signature in this domain.
    error BadSequencerSignature(uint256 which);
    /// @notice There is no bond to slash.
    error NoBond();
    /// @notice A transfer of ether failed.
    error TransferFailed(address to);

    /// @param registry_ The CommitteeRegistry made for this address.
    /// @param sequencer_ Whose signature stands under the headers.
    constructor(ICommitteeRegistry registry_, address sequencer_) {
        if (sequencer_ == address(0)) revert ZeroSequencer();
        if (registry_.inbox() != address(this)) revert ForeignRegistry(registry_.inbox());
        registry = registry_;
        sequencer = sequencer_;
        domainSeparator = Domain.separator(block.chainid, address(this));
        headHash = Domain.genesisHash(domainSeparator);
    }

    /// @dev A plain account calls this contract directly, so that the whole call is the transaction's input.
    modifier onlyTopLevel() {
        if (msg.sender != tx.origin || msg.sender.code.length != 0) revert NotTopLevel();
        _;
    }

    /// @notice Posts a run of headers that follow the head, with the certificate of the last. Anyone may.
    /// @param headers The headers in order, all of one epoch.
    /// @param data The run's envelopes, as `RunData` of docs/protocol.md, or nothing; not checked here.
    /// @param certificate Certificate of the last header.
    function post(BatchHeader[] calldata headers, bytes calldata data, Certificate calldata certificate)
        external
        onlyTopLevel
    {
        data; // read from the transaction's input
        uint256 count = headers.length;
        if (count == 0) revert EmptyRun();
        BatchHeader calldata last = headers[count - 1];
        (bytes32 newHash, bytes32 root) = chain(headers, last.epoch);

        uint64 epochFirst = registry.verifyCertificate(
            last.epoch, last.number, newHash, certificate.signers, certificate.signature
        );
        uint64 first = headers[0].number;
        if (first < epochFirst) revert RunCrossesEpoch(first);

        head = Head({
            number: last.number,
            timestampMs: last.timestampMs,
            l1OriginNumber: last.l1OriginNumber,
            forcedCursor: last.forcedCursor
        });
        headHash = newHash;
        runCommitment[last.number] = commitment(first, last.number, root);
        emit Posted(first, last.number, newHash, root);
    }

    /// @notice Posts data of posted batches again, from number `firstNumber` on: a `RunDataPart` of docs/protocol.md.
    /// Anyone may; nodes check it.
    function postData(uint64 firstNumber, bytes calldata data) external onlyTopLevel {
        data; // read from the transaction's input
        if (firstNumber == 0 || firstNumber > head.number) revert NotPosted(firstNumber);
        emit DataPosted(firstNumber, msg.sender);
    }

    /// @notice Whether `header` was posted, in the run `firstNumber ..= lastNumber`; and its hash.
    /// @param proof Siblings from the header's leaf (index `header.number − firstNumber`) up to the run's root.
    function verifyHeader(
        BatchHeader calldata header,
        uint64 firstNumber,
        uint64 lastNumber,
        bytes32 headerRoot,
        bytes32[] calldata proof
    ) external view returns (bool posted, bytes32 headerHash) {
        headerHash = header.hash();
        if (header.number < firstNumber || header.number > lastNumber) return (false, headerHash);
        if (runCommitment[lastNumber] != commitment(firstNumber, lastNumber, headerRoot)) {
            return (false, headerHash);
        }
        posted = MerkleTree.verify(
            headerRoot,
            uint256(lastNumber) - firstNumber + 1,
            header.number - firstNumber,
            MerkleTree.leaf(headerHash),
            proof
        );
    }

    /// @notice The hash of a header, as it is signed and chained.
    function hashHeader(BatchHeader calldata header) external pure returns (bytes32) {
        return header.hash();
    }

    /// @notice Adds to the sequencer's bond. Anyone may; only the sequencer can take it out.
    function depositBond() external payable {
        if (msg.value == 0) revert ZeroAmount();
        bond += msg.value;
        emit BondDeposited(msg.sender, msg.value, bond);
    }

    /// @notice Announces that `amount` of the bond will be taken out. Replaces an earlier announcement and starts the
    /// delay anew; 0 takes it back.
    function announceBondWithdrawal(uint128 amount) external {
        if (msg.sender != sequencer) revert NotSequencer(msg.sender);
        if (amount > bond) revert AmountAboveBond(amount, bond);
        uint256 unlocksAt = block.timestamp + WITHDRAWAL_DELAY_SECONDS;
        withdrawal = Withdrawal({ amount: amount, unlocksAt: uint64(unlocksAt) });
        emit BondWithdrawalAnnounced(amount, unlocksAt);
    }

    /// @notice Takes out the announced amount after the delay.
    function withdrawBond(address payable to) external {
        if (msg.sender != sequencer) revert NotSequencer(msg.sender);
        Withdrawal memory announced = withdrawal;
        if (announced.amount == 0) revert NoWithdrawalAnnounced();
        if (block.timestamp < announced.unlocksAt) revert WithdrawalLocked(announced.unlocksAt);
        delete withdrawal;
        bond -= announced.amount;
        emit BondWithdrawn(to, announced.amount, bond);
        send(to, announced.amount);
    }

    /// @notice Punishes the sequencer for two different headers of one number, both signed by it: at least half of
    /// the bond is burnt, so that reporting oneself gains nothing, and the rest waits for the reporter to claim it.
    /// @dev Whoever sees a report in the public mempool can copy it; a commit–reveal step against that comes with the
    /// dispute contracts. The number is marked once and for all, so the same evidence never takes a later bond.
    function slashEquivocation(
        BatchHeader calldata first,
        bytes calldata firstSignature,
        BatchHeader calldata second,
        bytes calldata secondSignature
    ) external {
        uint64 number = first.number;
        if (number != second.number) revert DifferentNumbers(number, second.number);
        bytes32 firstHash = first.hash();
        bytes32 secondHash = second.hash();
        if (firstHash == secondHash) revert SameHeader(firstHash);
        if (equivocated[number]) revert AlreadySlashed(number);
        if (!signedBySequencer(firstHash, firstSignature)) revert BadSequencerSignature(1);
        if (!signedBySequencer(secondHash, secondSignature)) revert BadSequencerSignature(2);
        uint256 slashed = bond;
        if (slashed == 0) revert NoBond();

        equivocated[number] = true;
        bond = 0;
        delete withdrawal;
        uint256 reward = slashed / 2;
        uint256 burnt = slashed - reward;
        rewards[msg.sender] += reward;
        emit Equivocation(number, msg.sender, firstHash, secondHash, burnt, reward);
        send(payable(address(0)), burnt);
    }

    /// @notice Pays out the caller's rewards.
    function claimReward() external {
        uint256 amount = rewards[msg.sender];
        if (amount == 0) revert ZeroAmount();
        rewards[msg.sender] = 0;
        emit RewardClaimed(msg.sender, amount);
        send(payable(msg.sender), amount);
    }

    /// @dev Checks that the headers follow the head and each other; the last one's hash and the root over all hashes.
    function chain(BatchHeader[] calldata headers, uint64 epoch)
        private
        view
        returns (bytes32 parent, bytes32 root)
    {
        Head memory previous = head;
        parent = headHash;
        bytes32[] memory leaves = new bytes32[](MerkleTree.width(headers.length));
        for (uint256 i = 0; i < headers.length; i++) {
            BatchHeader calldata header = headers[i];
            uint64 number = header.number;
            if (header.version != BatchHeaders.VERSION) revert UnsupportedVersion(header.version);
            if (number != previous.number + 1) revert WrongNumber(previous.number + 1, number);
            if (header.parentHash != parent) revert WrongParent(number, parent, header.parentHash);
            if (header.timestampMs <= previous.timestampMs) revert TimeNotIncreasing(number);
            if (header.l1OriginNumber < previous.l1OriginNumber) revert OriginDecreasing(number);
            if (header.forcedCursor < previous.forcedCursor) revert ForcedCursorDecreasing(number);
            if (header.epoch != epoch) revert RunCrossesEpoch(number);
            previous.number = number;
            previous.timestampMs = header.timestampMs;
            previous.l1OriginNumber = header.l1OriginNumber;
            previous.forcedCursor = header.forcedCursor;
            parent = header.hash();
            leaves[i] = MerkleTree.leaf(parent);
        }
        root = MerkleTree.rootInPlace(leaves);
    }

    function commitment(uint64 first, uint64 last, bytes32 root) private pure returns (bytes32) {
        return keccak256(abi.encode(first, last, root));
    }

    function signedBySequencer(bytes32 headerHash, bytes calldata signature) private view returns (bool) {
        // The sequencer is not the zero address, which stands for a bad signature.
        return Secp256k1.recover(Domain.digest(domainSeparator, headerHash), signature) == sequencer;
    }

    function send(address payable to, uint256 amount) private {
        (bool sent,) = to.call{ value: amount }("");
        if (!sent) revert TransferFailed(to);
    }
}
