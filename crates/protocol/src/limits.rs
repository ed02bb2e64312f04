//! Every limit of the protocol, with its unit last in the name.
//!
//! Changing a value that a validity rule reads changes the protocol: all parties must agree on it.

/// Version byte in front of every structure.
pub const VERSION: u8 = 2;
/// The rule set that this code speaks: what a header's `rules` names.
pub const RULES: u16 = 1;

/// Allowed lengths of the encrypted message, in bytes: the length of an envelope tells no more than its bucket (EN-6).
pub const SIZE_BUCKETS: [usize; 8] = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768];
/// The largest message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 32_768;
/// What an envelope adds to its message, in bytes (header, ciphertext header, proof, signature, length).
pub const ENVELOPE_OVERHEAD_BYTES: usize = 383;
/// The largest envelope, and so the longest item of a batch, in bytes.
pub const MAX_ENVELOPE_BYTES: usize = MAX_MESSAGE_BYTES + ENVELOPE_OVERHEAD_BYTES;
/// The most items of one bundle.
pub const MAX_BUNDLE_ITEMS: usize = 512;
/// The most items of one batch, skipped ones included.
pub const MAX_BATCH_ITEMS: usize = 4_096;

/// Expired fee nonces that a batch removes from the fee ledger: twice what it can add, so none stays for long.
pub const MAX_PRUNED_NONCES: usize = 2 * MAX_BATCH_ITEMS;

/// How far ahead of a batch's number an envelope's expiry may lie, in batches.
pub const EXPIRY_WINDOW: u64 = 4_096;
/// Clock difference up to which a member acknowledges, in milliseconds. Never part of a header's validity.
pub const CLOCK_SKEW_MS: u64 = 2_000;
/// Between two sequencers, in final L1 blocks: so far behind the block from which the next one's key counts, members vote
/// for no header of the one before. That one stops half as far behind it, and the next one begins half as far again.
/// Finality moves in steps of 32 blocks.
pub const HANDOVER_BLOCKS: u64 = 64;
/// Default distance between two seals, in milliseconds.
pub const SLOT_INTERVAL_MS: u64 = 250;
/// Headers sealed but not yet certified that a sequencer may have outstanding.
pub const MAX_UNCERTIFIED_HEADERS: usize = 16;
/// Headers that may lack a certificate in all, and so the longest run that one certificate covers: a sequencer seals above
/// those of the ones before it (rule K-6).
pub const MAX_UNCERTIFIED_RUN: usize = 4 * MAX_UNCERTIFIED_HEADERS;

/// Default gas limit of an L2 block.
pub const DEFAULT_BLOCK_GAS: u64 = 200_000_000;
/// Forced items that one header may take: the first items of its batch.
pub const MAX_FORCED_ITEMS: usize = 16;
/// The longest transaction that may be forced in the clear, in bytes.
pub const MAX_FORCED_TRANSACTION_BYTES: usize = 32_768;
/// The least gas limit of a forced transaction.
pub const MIN_FORCED_GAS: u64 = 21_000;
/// The largest gas limit of a forced transaction.
pub const MAX_FORCED_GAS: u64 = 10_000_000;
/// A forced envelope may ask for this part of a second's gas, so that a header's forced items always fit one second.
pub const FORCED_ENVELOPE_GAS_DIVISOR: u64 = MAX_FORCED_ITEMS as u64;
/// Gas of a block kept for the L1-attributes deposit and the system calls.
pub const RESERVED_BLOCK_GAS: u64 = 1_000_000;
/// Gas of a block kept for L1 deposits: a block takes the waiting ones in L1 order up to this sum, the others wait for
/// the next block. `DepositPortal` bounds the deposits of an L1 block, and so each one, by as much: one always fits.
/// Rule DP-2.
pub const RESERVED_DEPOSIT_GAS: u64 = 8_000_000;
/// The longest encoding of a block, in bytes (EIP-7934).
pub const MAX_BLOCK_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of a block kept for its header and the L1 deposits, of which the gas kept for them buys 200,000 bytes of data.
pub const RESERVED_BLOCK_BYTES: u64 = 512 * 1024;
/// Item bytes that the batches of one whole second may hold together. A transaction takes less in a block than in its
/// item, so the block of a full second always has room for it.
pub const MAX_SECOND_BYTES: u64 = MAX_BLOCK_BYTES - RESERVED_BLOCK_BYTES;

/// Accepted item bytes of one whole second at which the base fee stands still.
pub const TARGET_SECOND_BYTES: u64 = 512 * 1024;
/// A base fee moves by at most one part in so many a second.
pub const BASE_FEE_CHANGE_DENOMINATOR: u64 = 8;

/// Members of a committee: one bit each in a certificate.
pub const MAX_MEMBERS: usize = 64;

/// A batch's data are hashed in chunks of so many bytes, so that L1 can check them one by one.
pub const DATA_CHUNK_BYTES: usize = 65_536;

/// The longest data that members are asked to attest, in bytes: in hex they leave room in a peer's largest request, of 4 MiB.
pub const MAX_ATTESTED_DATA_BYTES: usize = (2 << 20) - (64 << 10);

/// The longest encoding of a sealed batch, in bytes: its fixed part, and a second's worth of items with their lengths.
pub const MAX_SEALED_BATCH_BYTES: usize = 1 + 259 + 65 + 4 + MAX_BATCH_ITEMS * 4 + MAX_SECOND_BYTES as usize;
