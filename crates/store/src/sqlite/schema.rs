//! Tables and their migrations.

use rusqlite::Connection;

use crate::StoreError;

/// The schema this program writes, in SQLite's `user_version`.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// Step `i` leads from schema `i` to `i + 1`. A published step is never changed.
const MIGRATIONS: &[&str] = &[
    // 1: envelopes, batches, the fee ledger, blocks, posts.
    "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;

    -- number: the batch it is sealed in while that batch is not certified.
    CREATE TABLE envelopes (
        id BLOB PRIMARY KEY, bytes BLOB NOT NULL, arrived_ms INTEGER NOT NULL, seal_by INTEGER, number INTEGER
    ) STRICT;
    CREATE INDEX envelopes_by_number ON envelopes (number);
    CREATE TABLE envelope_outcomes (id BLOB PRIMARY KEY, outcome TEXT NOT NULL, number INTEGER NOT NULL)
        STRICT, WITHOUT ROWID;
    CREATE INDEX envelope_outcomes_by_number ON envelope_outcomes (number);

    -- What arrives later has tables of its own, so that a certificate does not rewrite the batch.
    CREATE TABLE batches (number INTEGER PRIMARY KEY, hash BLOB NOT NULL, sealed BLOB NOT NULL, head BLOB NOT NULL)
        STRICT;
    CREATE TABLE items (
        number INTEGER NOT NULL, item INTEGER NOT NULL, id BLOB NOT NULL, fault TEXT, PRIMARY KEY (number, item)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX items_by_id ON items (id);
    CREATE TABLE acknowledgements (number INTEGER PRIMARY KEY, header_hash BLOB NOT NULL) STRICT;
    CREATE TABLE certificates (number INTEGER PRIMARY KEY, certificate BLOB NOT NULL) STRICT;
    CREATE TABLE releases (number INTEGER PRIMARY KEY, release BLOB NOT NULL) STRICT;
    CREATE TABLE hints (number INTEGER PRIMARY KEY, hints BLOB NOT NULL) STRICT;
    -- Stored batches without hints: a short list, so that the first gap is found without a walk over all batches.
    CREATE TABLE batches_without_hints (number INTEGER PRIMARY KEY) STRICT;

    -- nonces: (fee nonce u64, expiry u64) pairs, big-endian, ascending. balance: u128 big-endian.
    CREATE TABLE accounts (payer BLOB PRIMARY KEY, balance BLOB NOT NULL, nonces BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE held (
        number INTEGER NOT NULL, item INTEGER NOT NULL, payer BLOB NOT NULL, amount BLOB NOT NULL,
        PRIMARY KEY (number, item)
    ) STRICT, WITHOUT ROWID;
    -- How to go back from a batch that is not certified yet.
    CREATE TABLE account_changes (
        number INTEGER NOT NULL, payer BLOB NOT NULL, balance_before BLOB, nonces_before BLOB,
        PRIMARY KEY (number, payer)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE held_changes (
        number INTEGER NOT NULL, held_number INTEGER NOT NULL, before BLOB NOT NULL,
        PRIMARY KEY (number, held_number)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE blocks (
        number INTEGER PRIMARY KEY, second INTEGER NOT NULL UNIQUE, hash BLOB NOT NULL, parent_hash BLOB NOT NULL,
        state_root BLOB NOT NULL, first_batch INTEGER NOT NULL, last_batch INTEGER NOT NULL,
        transactions TEXT NOT NULL, payload BLOB NOT NULL
    ) STRICT;
    CREATE INDEX blocks_by_last_batch ON blocks (last_batch);
    CREATE TABLE posts (up_to_number INTEGER PRIMARY KEY, l1_transaction BLOB NOT NULL) STRICT;
    ",
    // 2: withdrawals from fee accounts (u128 big-endian), and headers that L1 made, which need no certificate.
    "
    ALTER TABLE accounts ADD COLUMN withdrawn BLOB NOT NULL DEFAULT x'00000000000000000000000000000000';
    ALTER TABLE account_changes ADD COLUMN withdrawn_before BLOB;
    CREATE TABLE l1_headers (number INTEGER PRIMARY KEY) STRICT;
    ",
    // 3: the number of the header that L1 made below an acknowledged one, which can never be posted then.
    "
    ALTER TABLE acknowledgements ADD COLUMN displaced_by INTEGER;
    ",
    // 4: fee accounts as they were before a batch, for proofs against a ledger that is not the newest. Rows of batches
    // above the floor stay; without a floor, those of batches that are not certified. Nulls: there was no account.
    "
    CREATE TABLE leaf_changes (
        number INTEGER NOT NULL, payer BLOB NOT NULL,
        balance_before BLOB, withdrawn_before BLOB, nonces_hash_before BLOB,
        PRIMARY KEY (number, payer)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX leaf_changes_by_payer ON leaf_changes (payer, number);
    CREATE TABLE ledger_floor (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL) STRICT;
    ",
    // 5: the coprocessor. A version counts confidential transactions that were applied, a sequence all of them;
    // accounts, nodes and balances are kept as they stand at the end of a batch. tree: 0 of the accounts, 1 of the
    // public balances. balance, nonce, confidential: u64 big-endian.
    "
    CREATE TABLE confidential_batches (
        number INTEGER PRIMARY KEY, hash BLOB NOT NULL, sequence INTEGER NOT NULL, version INTEGER NOT NULL,
        accounts INTEGER NOT NULL, public_accounts INTEGER NOT NULL, accounts_root BLOB NOT NULL,
        public_root BLOB NOT NULL, confidential BLOB NOT NULL, state_root BLOB NOT NULL
    ) STRICT;
    CREATE INDEX confidential_batches_by_version ON confidential_batches (version);
    CREATE TABLE confidential_owners (owner BLOB PRIMARY KEY, account INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE confidential_accounts (
        account INTEGER NOT NULL, version INTEGER NOT NULL, owner BLOB NOT NULL, state BLOB NOT NULL,
        PRIMARY KEY (account, version)
    ) STRICT;
    CREATE TABLE confidential_nodes (
        tree INTEGER NOT NULL, level INTEGER NOT NULL, place INTEGER NOT NULL, version INTEGER NOT NULL,
        hash BLOB NOT NULL, PRIMARY KEY (tree, level, place, version)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE public_balances (
        owner BLOB NOT NULL, version INTEGER NOT NULL, account INTEGER NOT NULL, balance BLOB NOT NULL,
        nonce BLOB NOT NULL, PRIMARY KEY (owner, version)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE confidential_transactions (
        sequence INTEGER PRIMARY KEY, version INTEGER NOT NULL, number INTEGER NOT NULL, id BLOB NOT NULL,
        item INTEGER NOT NULL, position INTEGER NOT NULL, applied INTEGER NOT NULL, bytes BLOB NOT NULL,
        receipt TEXT NOT NULL, state_root BLOB NOT NULL
    ) STRICT;
    CREATE INDEX confidential_transactions_by_version ON confidential_transactions (version);
    CREATE INDEX confidential_transactions_by_number ON confidential_transactions (number);
    CREATE INDEX confidential_transactions_by_id ON confidential_transactions (id);
    CREATE TABLE confidential_parties (
        party BLOB NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (party, sequence)
    ) STRICT, WITHOUT ROWID;
    ",
];

/// Brings the file to [`SCHEMA_VERSION`]; each step is one transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    loop {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if !(0..=SCHEMA_VERSION).contains(&found) {
            return Err(StoreError::NewerSchema { found, known: SCHEMA_VERSION });
        }
        let Some(step) = usize::try_from(found).ok().and_then(|found| MIGRATIONS.get(found)) else {
            return Ok(());
        };
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", found + 1)?;
        transaction.commit()?;
    }
}
