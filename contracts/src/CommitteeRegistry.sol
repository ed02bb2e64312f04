// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { SSTORE2 } from "solady/utils/SSTORE2.sol";
import { ICommitteeRegistry } from "./interfaces/ICommitteeRegistry.sol";
import { Bls12381 } from "./libraries/Bls12381.sol";
import { Domain } from "./libraries/Domain.sol";

/// @title Committees and the certificates they give
/// @notice Epochs are contiguous ranges of batch numbers, numbered from 1, the first beginning at batch number 1:
/// exactly one committee certifies a number. An epoch fixes the encryption key, the hash of the public parameters and
/// the members' BLS keys. Whoever reads an encryption key from here need not trust the sequencer for it.
/// @dev The governor, set at deployment for good, appends epochs. That is its whole power: it cannot change or remove
/// an epoch, it holds no funds and can move none. It does choose who decrypts and certifies in epochs to come: a
/// governor that registers a committee of its own reads and orders what users encrypt to *that* key.
contract CommitteeRegistry is ICommitteeRegistry {
    /// @notice Length of an encryption key: an element of GT.
    uint256 public constant ENCRYPTION_KEY_BYTES = 576;
    /// @notice The most members of a committee: the signers of a certificate are a 64-bit set.
    uint256 public constant MAX_MEMBERS = 64;
    /// @notice The longest `parametersLocation`.
    uint256 public constant MAX_LOCATION_BYTES = 512;

    /// @dev keccak256 of the EIP-712 type that members sign.
    bytes32 internal constant ACKNOWLEDGEMENT_TYPEHASH =
        keccak256("Acknowledgement(uint8 version,uint64 epoch,uint64 number,bytes32 headerHash)");
    /// @dev Version of the `Acknowledgement` structure.
    uint8 internal constant ACKNOWLEDGEMENT_VERSION = 1;

    /// @notice One member at registration.
    struct Member {
        /// BLS key in G2, 256 bytes as in EIP-2537.
        bytes key;
        /// Signature in G1 over the compressed key with the proof-of-possession tag, 128 bytes as in EIP-2537.
        bytes possession;
    }

    /// @notice What the governor gives for a new epoch.
    struct EpochParameters {
        /// Last batch number of the epoch; the first is the one after the previous epoch's last.
        uint64 lastNumber;
        /// The most ciphertexts in one sub-batch: B.
        uint32 maxBatch;
        /// Acknowledgements that make a certificate: t, more than half of the members.
        uint16 threshold;
        /// Hash of the public parameters' file.
        bytes32 parametersHash;
        /// The encryption key ek, 576 bytes.
        bytes encryptionKey;
        /// Where the public parameters can be fetched; a hint, the hash decides.
        string parametersLocation;
    }

    /// @notice One epoch as it is read back.
    struct Epoch {
        uint64 epoch;
        uint64 firstNumber;
        uint64 lastNumber;
        uint32 maxBatch;
        uint16 threshold;
        bytes32 parametersHash;
        bytes32 encryptionKeyHash;
        string parametersLocation;
        /// Members' keys in order, 256 bytes each.
        bytes[] memberKeys;
    }

    /// @dev One epoch as it is stored. The bulk lies in the code of two contracts without functions.
    struct Record {
        uint64 firstNumber;
        uint64 lastNumber;
        uint32 maxBatch;
        uint16 threshold;
        uint16 memberCount;
        address keys;
        address encryptionKey;
        bytes32 encryptionKeyHash;
        bytes32 parametersHash;
        string parametersLocation;
    }

    /// @notice Who may append epochs.
    address public immutable governor;
    /// @inheritdoc ICommitteeRegistry
    /// @dev The verifying contract of the domain.
    address public immutable override inbox;
    /// @notice Separator of the domain that acknowledgements are signed in.
    bytes32 public immutable domainSeparator;

    /// @notice How many epochs there are; the newest has this number.
    uint64 public epochCount;

    mapping(uint64 epoch => Record) private records;

    /// @notice An epoch was appended.
    event EpochRegistered(
        uint64 indexed epoch,
        uint64 firstNumber,
        uint64 lastNumber,
        bytes32 encryptionKeyHash,
        bytes32 parametersHash
    );

    /// @notice The governor or the inbox is the zero address.
    error ZeroAddress();
    /// @notice Only the governor may do this.
    error NotGovernor(address caller);
    /// @notice The last number is below the first.
    error EmptyEpoch(uint64 firstNumber, uint64 lastNumber);
    /// @notice B is zero.
    error ZeroMaxBatch();
    /// @notice No member, or more than `MAX_MEMBERS`.
    error BadMemberCount(uint256 count);
    /// @notice t is not more than half of n, or more than n.
    error BadThreshold(uint256 threshold, uint256 members);
    /// @notice The encryption key has the wrong length.
    error BadEncryptionKeyLength(uint256 length);
    /// @notice The location is longer than `MAX_LOCATION_BYTES`.
    error LocationTooLong(uint256 length);
    /// @notice The key or proof of member `member` (from 1) has the wrong length.
    error BadMemberEncoding(uint256 member);
    /// @notice The key of member `member` is that of an earlier member.
    error DuplicateMember(uint256 member);
    /// @notice The proof of possession of member `member` does not verify.
    error BadProofOfPossession(uint256 member);
    /// @notice There is no such epoch.
    error UnknownEpoch(uint64 epoch);
    /// @notice The number is not in the epoch.
    error NumberOutsideEpoch(uint64 epoch, uint64 number);
    /// @notice A bit is set for a member that does not exist.
    error UnknownSigner(uint64 signers);
    /// @notice Fewer signers than the threshold.
    error TooFewSigners(uint256 signers, uint256 threshold);
    /// @notice The aggregate signature has the wrong length or does not verify.
    error BadAggregateSignature();

    /// @param governor_ Who may append epochs.
    /// @param inbox_ Address of the BlindedInbox; it is deployed afterwards, so the address is computed beforehand.
    constructor(address governor_, address inbox_) {
        if (governor_ == address(0) || inbox_ == address(0)) revert ZeroAddress();
        governor = governor_;
        inbox = inbox_;
        domainSeparator = Domain.separator(block.chainid, inbox_);
    }

    /// @notice Appends an epoch. Costs about 160,000 gas for each member and 200,000 besides.
    /// @dev A proof of possession keeps a member from choosing its key as a function of the others' (rogue key);
    /// its pairing is also where each key's subgroup is checked.
    function registerEpoch(EpochParameters calldata parameters, Member[] calldata members)
        external
        returns (uint64 epoch)
    {
        if (msg.sender != governor) revert NotGovernor(msg.sender);
        epoch = epochCount + 1;
        uint64 firstNumber = records[epoch - 1].lastNumber + 1;
        checkParameters(parameters, members.length, firstNumber);

        Record storage record = records[epoch];
        record.firstNumber = firstNumber;
        record.lastNumber = parameters.lastNumber;
        record.maxBatch = parameters.maxBatch;
        record.threshold = parameters.threshold;
        record.memberCount = uint16(members.length);
        record.keys = SSTORE2.write(checkedKeys(members));
        record.encryptionKey = SSTORE2.write(parameters.encryptionKey);
        bytes32 encryptionKeyHash = sha256(parameters.encryptionKey);
        record.encryptionKeyHash = encryptionKeyHash;
        record.parametersHash = parameters.parametersHash;
        record.parametersLocation = parameters.parametersLocation;
        epochCount = epoch;
        emit EpochRegistered(
            epoch, firstNumber, parameters.lastNumber, encryptionKeyHash, parameters.parametersHash
        );
    }

    /// @notice Reverts unless at least t members of the epoch signed the acknowledgement of `(epoch, number,
    /// headerHash)` and the number belongs to the epoch.
    /// @param signers Bit j−1 is set for member j.
    /// @param signature Aggregate signature, 128 bytes as in EIP-2537.
    /// @return firstNumber The epoch's first number.
    function verifyCertificate(
        uint64 epoch,
        uint64 number,
        bytes32 headerHash,
        uint64 signers,
        bytes calldata signature
    ) external view override returns (uint64 firstNumber) {
        Record storage record = existing(epoch);
        firstNumber = record.firstNumber;
        if (number < firstNumber || number > record.lastNumber) revert NumberOutsideEpoch(epoch, number);
        if (uint256(signers) >> record.memberCount != 0) revert UnknownSigner(signers);
        uint256 count = bitCount(signers);
        if (count < record.threshold) revert TooFewSigners(count, record.threshold);
        if (signature.length != Bls12381.G1_BYTES) revert BadAggregateSignature();

        bytes memory key = Bls12381.sum(SSTORE2.read(record.keys), signers);
        bytes memory message = abi.encodePacked(acknowledgementDigest(epoch, number, headerHash));
        if (!Bls12381.verify(key, Bls12381.SIGNATURE_TAG, message, signature)) {
            revert BadAggregateSignature();
        }
    }

    /// @notice The 32 bytes that a member signs to acknowledge a header.
    function acknowledgementDigest(uint64 epoch, uint64 number, bytes32 headerHash)
        public
        view
        returns (bytes32)
    {
        return Domain.digest(
            domainSeparator,
            keccak256(
                abi.encode(ACKNOWLEDGEMENT_TYPEHASH, ACKNOWLEDGEMENT_VERSION, epoch, number, headerHash)
            )
        );
    }

    /// @notice Everything about an epoch but its encryption key.
    function getEpoch(uint64 epoch) external view returns (Epoch memory) {
        Record storage record = existing(epoch);
        bytes memory packed = SSTORE2.read(record.keys);
        bytes[] memory keys = new bytes[](record.memberCount);
        for (uint256 i = 0; i < keys.length; i++) {
            keys[i] = Bls12381.unpack(packed, i);
        }
        return Epoch({
            epoch: epoch,
            firstNumber: record.firstNumber,
            lastNumber: record.lastNumber,
            maxBatch: record.maxBatch,
            threshold: record.threshold,
            parametersHash: record.parametersHash,
            encryptionKeyHash: record.encryptionKeyHash,
            parametersLocation: record.parametersLocation,
            memberKeys: keys
        });
    }

    /// @inheritdoc ICommitteeRegistry
    function encryptionKey(uint64 epoch) external view override returns (bytes memory) {
        return SSTORE2.read(existing(epoch).encryptionKey);
    }

    /// @inheritdoc ICommitteeRegistry
    function numbersOf(uint64 epoch) external view override returns (uint64 firstNumber, uint64 lastNumber) {
        Record storage record = existing(epoch);
        return (record.firstNumber, record.lastNumber);
    }

    /// @notice The epoch of a batch number; reverts with `UnknownEpoch(0)` when none is registered for it.
    function epochOf(uint64 number) external view override returns (uint64) {
        uint64 low = 1;
        uint64 high = epochCount;
        if (number == 0 || number > records[high].lastNumber) revert UnknownEpoch(0);
        while (low < high) {
            uint64 middle = low + (high - low) / 2;
            if (number <= records[middle].lastNumber) high = middle;
            else low = middle + 1;
        }
        return low;
    }

    function existing(uint64 epoch) private view returns (Record storage) {
        if (epoch == 0 || epoch > epochCount) revert UnknownEpoch(epoch);
        return records[epoch];
    }

    function checkParameters(EpochParameters calldata parameters, uint256 members, uint64 firstNumber)
        private
        pure
    {
        if (parameters.lastNumber < firstNumber) {
            revert EmptyEpoch(firstNumber, parameters.lastNumber);
        }
        if (parameters.maxBatch == 0) revert ZeroMaxBatch();
        if (members == 0 || members > MAX_MEMBERS) revert BadMemberCount(members);
        // With f dishonest members two conflicting certificates are impossible only if 2t > n + f; f is not known
        // here, so this is the least that must hold.
        if (2 * uint256(parameters.threshold) <= members || parameters.threshold > members) {
            revert BadThreshold(parameters.threshold, members);
        }
        if (parameters.encryptionKey.length != ENCRYPTION_KEY_BYTES) {
            revert BadEncryptionKeyLength(parameters.encryptionKey.length);
        }
        uint256 locationLength = bytes(parameters.parametersLocation).length;
        if (locationLength > MAX_LOCATION_BYTES) revert LocationTooLong(locationLength);
    }

    /// @dev Checks every member's key and returns all of them, packed.
    function checkedKeys(Member[] calldata members) private view returns (bytes memory packed) {
        bytes32[] memory seen = new bytes32[](members.length);
        for (uint256 i = 0; i < members.length; i++) {
            bytes calldata key = members[i].key;
            bytes calldata possession = members[i].possession;
            if (key.length != Bls12381.G2_BYTES || possession.length != Bls12381.G1_BYTES) {
                revert BadMemberEncoding(i + 1);
            }
            seen[i] = keccak256(key);
            for (uint256 j = 0; j < i; j++) {
                if (seen[j] == seen[i]) revert DuplicateMember(i + 1);
            }
            bytes memory message = Bls12381.compress(key);
            if (!Bls12381.verify(key, Bls12381.POSSESSION_TAG, message, possession)) {
                revert BadProofOfPossession(i + 1);
            }
            packed = bytes.concat(packed, Bls12381.pack(key));
        }
    }

    function bitCount(uint64 set) private pure returns (uint256 count) {
        for (; set != 0; set &= set - 1) {
            count++;
        }
    }
}
