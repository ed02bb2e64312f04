// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import { SSTORE2 } from "solady/utils/SSTORE2.sol";
import { SequencerSchedule } from "./SequencerSchedule.sol";
import { IBlindedInbox } from "./interfaces/IBlindedInbox.sol";
import { ICommitteeRegistry, RegistrySettings } from "./interfaces/ICommitteeRegistry.sol";
import { IEncryptionKeyVerifier } from "./interfaces/IEncryptionKeyVerifier.sol";
import { IMemberStakes } from "./interfaces/IMemberStakes.sol";
import { Bls12381 } from "./libraries/Bls12381.sol";
import { Domain } from "./libraries/Domain.sol";

/// @title Committees and the certificates they give
/// @notice Epochs are contiguous ranges of batch numbers, numbered from 1, the first beginning at batch number 1:
/// exactly one committee certifies a number. An epoch fixes the encryption key, h_1, the hash of the public parameters
/// and the members' BLS keys. Whoever reads an encryption key from here need not trust the sequencer for it.
///
/// An epoch but the first certifies only from `epochNotice` L1 blocks after its registration on. That is longer than the
/// withdrawal delay of the FeeVault, so whoever does not trust the new committee has taken out what is its own before
/// that committee's first header counts.
///
/// An epoch's end can come earlier than registered: at a number far ahead, or before it began (`endEpoch`); or at the head,
/// after a notice in L1 blocks that is shorter when its committee is silent (`announceEnd`, `announceSilence`), with a
/// header that L1 makes. The next epoch begins behind it. Where no epoch is registered for a number, L1 still makes
/// headers, in the name of the last one.
/// @dev The governor, set at deployment for good, appends epochs, ends them early, schedules rule sets and names the
/// sequencer's next key, each with notice. That is its whole power: it holds no funds and can move none. It does choose who decrypts and certifies in
/// epochs to come: a governor that registers a committee of its own reads and orders what users encrypt to *that* key.
///
/// | slot | storage | in |
/// |---|---|---|
/// | 0 | `epochCount`, `revision`, `endedAt` (u64 each) | RegistrySchedule |
/// | 1 | `ending` | |
/// | 2 | `rulesChanges[]` | |
/// | 3 | `sequencerChanges[]` | SequencerSchedule |
/// | 4 | `records[epoch]`: six slots, see `Record` | |
contract CommitteeRegistry is SequencerSchedule {
    /// @notice Length of an encryption key: an element of GT.
    uint256 public constant ENCRYPTION_KEY_BYTES = 576;
    /// @notice The most members of a committee: the signers of a certificate are a 64-bit set.
    uint256 public constant MAX_MEMBERS = 64;
    /// @notice The most epochs behind that of the next number. Those without a number move along with the end before them,
    /// in one transaction, which may be the one that L1 needs to go on.
    uint64 public constant MAX_EPOCHS_AHEAD = 256;
    /// @notice The longest `parametersLocation`.
    uint256 public constant MAX_LOCATION_BYTES = 512;

    /// @dev keccak256 of the EIP-712 type that members sign.
    bytes32 internal constant ACKNOWLEDGEMENT_TYPEHASH =
        keccak256("Acknowledgement(uint8 version,uint64 epoch,uint64 number,bytes32 headerHash)");
    /// @dev Version of the `Acknowledgement` structure.
    uint8 internal constant ACKNOWLEDGEMENT_VERSION = 2;

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
        /// The epoch whose key this one continues, with other members or the same; 0 for a new key.
        uint64 continues;
        /// The encryption key ek, 576 bytes; empty where it is continued.
        bytes encryptionKey;
        /// h_1 = [τ]_2, 256 bytes as in EIP-2537; empty where the key is continued.
        bytes h1;
        /// Where the public parameters can be fetched; a hint, the hash decides.
        string parametersLocation;
    }

    /// @notice One epoch as it is read back.
    struct Epoch {
        uint64 epoch;
        uint64 firstNumber;
        uint64 lastNumber;
        /// The L1 block from which on its certificates count.
        uint64 countsFrom;
        /// The epoch whose key it continues; 0 for none.
        uint64 continues;
        uint32 maxBatch;
        uint16 threshold;
        bytes32 parametersHash;
        bytes32 encryptionKeyHash;
        /// h_1, 256 bytes.
        bytes h1;
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
        uint64 countsFrom;
        /// Members' keys, packed.
        address keys;
        uint64 continues;
        /// The encryption key, and h_1 packed.
        address encryption;
        bytes32 encryptionKeyHash;
        bytes32 parametersHash;
        string parametersLocation;
    }

    /// @notice What checks encryption keys.
    IEncryptionKeyVerifier public immutable keyVerifier;
    /// @notice What members have at stake; the zero address where nothing is asked of them.
    IMemberStakes public immutable stakes;
    /// @notice Separator of the domain that acknowledgements are signed in.
    bytes32 public immutable domainSeparator;

    mapping(uint64 epoch => Record) private records;

    /// @notice An epoch was appended.
    event EpochRegistered(
        uint64 indexed epoch,
        uint64 firstNumber,
        uint64 lastNumber,
        uint64 countsFrom,
        bytes32 encryptionKeyHash,
        bytes32 parametersHash
    );
    /// @notice The epoch's last number is this one now: earlier than registered, or later because L1 made headers in its
    /// name after its end. What comes next begins behind it.
    event EpochEnds(uint64 indexed epoch, uint64 lastNumber);

    /// @notice Behind the epoch of the next number there are `ahead` already, `MAX_EPOCHS_AHEAD`.
    error TooManyEpochs(uint64 ahead);
    /// @notice The last number is below the first.
    error EmptyEpoch(uint64 firstNumber, uint64 lastNumber);
    /// @notice B is zero.
    error ZeroMaxBatch();
    /// @notice Fewer members than `minMembers`, or more than `MAX_MEMBERS`.
    error BadMemberCount(uint256 count);
    /// @notice t is below `minThreshold`, not more than half of n, or more than n.
    error BadThreshold(uint256 threshold, uint256 members);
    /// @notice The encryption key has the wrong length.
    error BadEncryptionKeyLength(uint256 length);
    /// @notice The encryption key is no element of GT, or is its identity.
    error BadEncryptionKey();
    /// @notice h_1 has the wrong length or is the identity.
    error BadH1();
    /// @notice An epoch that continues a key gives neither key nor h_1, names an earlier epoch, and has its B.
    error BadContinuation(uint64 continues);
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
    /// @notice The epoch's certificates count from this L1 block on.
    error EpochNotInForce(uint64 epoch, uint64 countsFrom);
    /// @notice The new last number is not below the one that is registered, or below the epoch's first.
    error NotAnEarlierEnd(uint64 epoch, uint64 lastNumber);
    /// @notice The number is not in the epoch.
    error NumberOutsideEpoch(uint64 epoch, uint64 number);
    /// @notice A bit is set for a member that does not exist.
    error UnknownSigner(uint64 signers);
    /// @notice Fewer signers than the threshold.
    error TooFewSigners(uint256 signers, uint256 threshold);
    /// @notice The aggregate signature has the wrong length or does not verify.
    error BadAggregateSignature();

    /// @param governor_ Who may append epochs and schedule changes.
    /// @param inbox_ Address of the BlindedInbox; it is deployed afterwards, so the address is computed beforehand.
    /// @param sequencer_ The key that signs headers until the governor names another.
    /// @param keyVerifier_ Address of the EncryptionKeyVerifier.
    /// @param stakes_ Address of the MemberStakes, deployed afterwards; the zero address for none.
    /// @param settings What is fixed about committees for good.
    constructor(
        address governor_,
        address inbox_,
        address sequencer_,
        IEncryptionKeyVerifier keyVerifier_,
        IMemberStakes stakes_,
        RegistrySettings memory settings
    ) SequencerSchedule(governor_, inbox_, sequencer_, settings) {
        keyVerifier = keyVerifier_;
        stakes = stakes_;
        domainSeparator = Domain.separator(block.chainid, inbox_);
    }

    /// @notice Appends an epoch. Costs about 160,000 gas for each member and 1,100,000 besides. It begins behind the
    /// previous one, or behind the head where L1 made headers after the previous one's end (E-1, E-10).
    /// @dev A proof of possession keeps a member from choosing its key as a function of the others' (rogue key);
    /// its pairing is also where each key's subgroup is checked.
    function registerEpoch(EpochParameters calldata parameters, Member[] calldata members)
        external
        onlyGovernor
        returns (uint64 epoch)
    {
        epoch = epochCount + 1;
        uint64 ahead = epochCount - servingEpoch(headNumber() + 1);
        if (ahead >= MAX_EPOCHS_AHEAD) revert TooManyEpochs(ahead);
        uint64 firstNumber = firstFree(epoch);
        checkParameters(parameters, members.length, firstNumber);

        Record storage record = records[epoch];
        record.firstNumber = firstNumber;
        record.lastNumber = parameters.lastNumber;
        record.maxBatch = parameters.maxBatch;
        record.threshold = parameters.threshold;
        record.memberCount = uint16(members.length);
        // The vault takes nothing before there is a first epoch, so nobody need leave because of that one.
        uint64 countsFrom = uint64(block.number) + (epoch == 1 ? 0 : epochNotice);
        record.countsFrom = countsFrom;
        record.keys = SSTORE2.write(checkedKeys(members, epoch, parameters.lastNumber));
        bytes32 encryptionKeyHash = setEncryption(record, parameters, epoch);
        record.parametersHash = parameters.parametersHash;
        record.parametersLocation = parameters.parametersLocation;
        epochCount = epoch;
        revision += 1;
        emit EpochRegistered(
            epoch,
            firstNumber,
            parameters.lastNumber,
            countsFrom,
            encryptionKeyHash,
            parameters.parametersHash
        );
    }

    /// @notice Ends an epoch earlier than registered, at a number that is still far ahead. What follows moves up. An epoch
    /// whose certificates do not count yet can end at any of its numbers, or before the first: nothing was certified for it.
    /// Rules E-4, E-9.
    function endEpoch(uint64 epoch, uint64 lastNumber) external onlyGovernor {
        Record storage record = existing(epoch);
        uint64 firstNumber = record.firstNumber;
        bool begun = block.number >= record.countsFrom || headNumber() >= firstNumber;
        uint64 least = begun ? firstNumber : firstNumber - 1;
        if (lastNumber >= record.lastNumber || lastNumber < least) {
            revert NotAnEarlierEnd(epoch, lastNumber);
        }
        if (begun) requireLead(lastNumber);
        end(epoch, lastNumber);
    }

    /// @inheritdoc ICommitteeRegistry
    function endEpochAt(uint64 number) external override {
        if (msg.sender != inbox) revert NotInbox(msg.sender);
        endAnnounced(number, number);
    }

    /// @notice Ends the first epoch, whose end was announced and is due, before its first number: L1 makes no header before
    /// the first certified one. Anyone may (E-8).
    function endFirstEpoch() external {
        uint64 head = headNumber();
        if (head != 0) revert HeadersPosted(head);
        endAnnounced(1, 0);
    }

    /// @notice Reverts unless at least t members of the epoch signed the acknowledgement of `(epoch, number,
    /// headerHash)`, the number belongs to the epoch, and the epoch's notice is over.
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
        if (block.number < record.countsFrom) revert EpochNotInForce(epoch, record.countsFrom);
        if (uint256(signers) >> record.memberCount != 0) revert UnknownSigner(signers);
        uint256 count = bitCount(signers);
        if (count < record.threshold) revert TooFewSigners(count, record.threshold);
        if (!signed(record.keys, epoch, number, headerHash, signers, signature)) {
            revert BadAggregateSignature();
        }
    }

    /// @inheritdoc ICommitteeRegistry
    function acknowledged(
        uint64 epoch,
        uint64 number,
        bytes32 headerHash,
        uint64 signers,
        bytes calldata signature
    ) external view override returns (bool) {
        Record storage record = existing(epoch);
        if (signers == 0 || uint256(signers) >> record.memberCount != 0) return false;
        return signed(record.keys, epoch, number, headerHash, signers, signature);
    }

    /// @inheritdoc ICommitteeRegistry
    function memberKey(uint64 epoch, uint16 member) external view override returns (bytes memory) {
        return Bls12381.unpack(SSTORE2.read(existing(epoch).keys), uint256(member) - 1);
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
            countsFrom: record.countsFrom,
            continues: record.continues,
            maxBatch: record.maxBatch,
            threshold: record.threshold,
            parametersHash: record.parametersHash,
            encryptionKeyHash: record.encryptionKeyHash,
            h1: h1(epoch),
            parametersLocation: record.parametersLocation,
            memberKeys: keys
        });
    }

    /// @inheritdoc ICommitteeRegistry
    function encryptionKey(uint64 epoch) external view override returns (bytes memory) {
        return SSTORE2.read(existing(epoch).encryption, 0, ENCRYPTION_KEY_BYTES);
    }

    /// @inheritdoc ICommitteeRegistry
    function h1(uint64 epoch) public view override returns (bytes memory) {
        return Bls12381.unpack(SSTORE2.read(existing(epoch).encryption, ENCRYPTION_KEY_BYTES), 0);
    }

    /// @inheritdoc ICommitteeRegistry
    function numbersOf(uint64 epoch) external view override returns (uint64 firstNumber, uint64 lastNumber) {
        Record storage record = existing(epoch);
        return (record.firstNumber, record.lastNumber);
    }

    /// @inheritdoc ICommitteeRegistry
    function servingEpoch(uint64 number) public view override returns (uint64) {
        uint64 count = epochCount;
        return number > records[count].lastNumber ? count : epochOf(number);
    }

    /// @notice The epoch of a batch number; reverts with `UnknownEpoch(0)` when none is registered for it.
    /// @dev The first whose last number is not below it, so an epoch that ended before it began is never found.
    function epochOf(uint64 number) public view override returns (uint64) {
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

    /// @dev Whether the aggregate signature is that of these members over the acknowledgement.
    function signed(
        address keys,
        uint64 epoch,
        uint64 number,
        bytes32 headerHash,
        uint64 signers,
        bytes calldata signature
    ) private view returns (bool) {
        if (signature.length != Bls12381.G1_BYTES) return false;
        bytes memory key = Bls12381.sum(SSTORE2.read(keys), signers);
        bytes memory message = abi.encodePacked(acknowledgementDigest(epoch, number, headerHash));
        return Bls12381.verify(key, Bls12381.SIGNATURE_TAG, message, signature);
    }

    function existing(uint64 epoch) private view returns (Record storage) {
        if (epoch == 0 || epoch > epochCount) revert UnknownEpoch(epoch);
        return records[epoch];
    }

    /// @dev The number at which epoch `epoch`, the next one, begins. Numbers that L1 gave out after the previous one's end
    /// are the previous one's.
    function firstFree(uint64 epoch) private returns (uint64) {
        uint64 previousLast = records[epoch - 1].lastNumber;
        uint64 head = headNumber();
        if (epoch == 1 || head <= previousLast) return previousLast + 1;
        end(epoch - 1, head);
        return head + 1;
    }

    /// @dev Ends the epoch of `number` with `lastNumber`, if that is due, and uses up the announcement.
    function endAnnounced(uint64 number, uint64 lastNumber) private {
        if (!endDue(number)) revert EndNotDue(number);
        uint64 epoch = ending.epoch;
        delete ending;
        endedAt = uint64(block.number);
        end(epoch, lastNumber);
    }

    /// @dev An epoch becomes the next number's in one of four ways: a certified posting does it, which is a sign of life by
    /// itself; a header of L1's takes the last number before it; the first epoch ends without a number; or it is
    /// registered, or what stands before it taken back, before its certificates count.
    function next() internal view override returns (uint64 epoch, uint64 since) {
        epoch = epochOf(headNumber() + 1);
        Record storage record = records[epoch];
        since = record.countsFrom;
        if (since < endedAt) since = endedAt;
        uint64 madeAt = IBlindedInbox(inbox).lastMadeBelow(record.firstNumber);
        if (since < madeAt) since = madeAt;
    }

    /// @dev Moves the end of an epoch. What follows begins behind it: epochs without a number stay without one, up to the
    /// first that has some.
    function end(uint64 epoch, uint64 lastNumber) private {
        uint64 count = epochCount;
        records[epoch].lastNumber = lastNumber;
        emit EpochEnds(epoch, lastNumber);
        for (uint64 next_ = epoch + 1; next_ <= count; next_++) {
            Record storage record = records[next_];
            bool empty = record.lastNumber < record.firstNumber;
            record.firstNumber = lastNumber + 1;
            if (!empty) break;
            record.lastNumber = lastNumber;
            emit EpochEnds(next_, lastNumber);
        }
        revision += 1;
    }

    /// @dev Stores the encryption key and h_1, or refers to those of the epoch that is continued (E-12).
    function setEncryption(Record storage record, EpochParameters calldata parameters, uint64 epoch)
        private
        returns (bytes32 encryptionKeyHash)
    {
        uint64 continues = parameters.continues;
        if (continues == 0) {
            encryptionKeyHash = sha256(parameters.encryptionKey);
            record.encryption =
                SSTORE2.write(bytes.concat(parameters.encryptionKey, Bls12381.pack(parameters.h1)));
        } else {
            Record storage continued = records[continues];
            bool fits = continues < epoch && parameters.maxBatch == continued.maxBatch
                && parameters.encryptionKey.length == 0 && parameters.h1.length == 0;
            if (!fits) revert BadContinuation(continues);
            encryptionKeyHash = continued.encryptionKeyHash;
            record.encryption = continued.encryption;
            record.continues = continues;
        }
        record.encryptionKeyHash = encryptionKeyHash;
    }

    /// @dev Rule E-13.
    function checkParameters(EpochParameters calldata parameters, uint256 members, uint64 firstNumber)
        private
        view
    {
        if (parameters.lastNumber < firstNumber) {
            revert EmptyEpoch(firstNumber, parameters.lastNumber);
        }
        if (parameters.maxBatch == 0) revert ZeroMaxBatch();
        if (members < minMembers || members > MAX_MEMBERS) revert BadMemberCount(members);
        // With f dishonest members two conflicting certificates are impossible only if 2t > n + f; f is not known
        // here, so this is the least that must hold.
        uint256 threshold = parameters.threshold;
        if (2 * threshold <= members || threshold > members || threshold < minThreshold) {
            revert BadThreshold(threshold, members);
        }
        if (parameters.continues == 0) checkEncryption(parameters);
        uint256 locationLength = bytes(parameters.parametersLocation).length;
        if (locationLength > MAX_LOCATION_BYTES) revert LocationTooLong(locationLength);
    }

    /// @dev A new key: an element of GT, and h_1 is a point of G2 (E-7).
    function checkEncryption(EpochParameters calldata parameters) private view {
        if (parameters.encryptionKey.length != ENCRYPTION_KEY_BYTES) {
            revert BadEncryptionKeyLength(parameters.encryptionKey.length);
        }
        if (!keyVerifier.isEncryptionKey(parameters.encryptionKey)) revert BadEncryptionKey();
        bytes memory point = parameters.h1;
        if (point.length != Bls12381.G2_BYTES || Bls12381.isZero(point)) revert BadH1();
        Bls12381.requireInG2(point);
    }

    /// @dev Checks every member's key, binds what it has at stake, and returns all of them, packed.
    function checkedKeys(Member[] calldata members, uint64 epoch, uint64 lastNumber)
        private
        returns (bytes memory packed)
    {
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
            if (address(stakes) != address(0)) stakes.bind(seen[i], epoch, lastNumber);
            packed = bytes.concat(packed, Bls12381.pack(key));
        }
    }

    function bitCount(uint64 set) private pure returns (uint256 count) {
        for (; set != 0; set &= set - 1) {
            count++;
        }
    }
}
