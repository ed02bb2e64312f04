//! Tables and their migrations.

use rusqlite::Connection;

use crate::StoreError;

/// The schema this program writes, in SQLite's `user_version`.
pub const SCHEMA_VERSION: i64 = FIRST_SCHEMA + MIGRATIONS.len() as i64 - 1;

/// The oldest schema that can be brought up to date. Those before it held structures of protocol version 1.
pub const FIRST_SCHEMA: i64 = 6;

/// The first step makes [`FIRST_SCHEMA`] in a new file, step `i` leads from the schema before it to
/// `FIRST_SCHEMA + i`. A published step is never changed.
const MIGRATIONS: &[&str] = &[
    // 6: envelopes, batches, the fee ledger, blocks, posts, the coprocessor.
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
    -- origin: the header's L1 origin. displaced_by: the number of the header that L1 made below, after that origin, with
    -- which this one can never be posted.
    CREATE TABLE acknowledgements (
        number INTEGER PRIMARY KEY, header_hash BLOB NOT NULL, origin INTEGER NOT NULL, displaced_by INTEGER
    ) STRICT;
    CREATE TABLE certificates (number INTEGER PRIMARY KEY, certificate BLOB NOT NULL) STRICT;
    -- Headers that L1 made, which need no certificate.
    CREATE TABLE l1_headers (number INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE releases (number INTEGER PRIMARY KEY, release BLOB NOT NULL) STRICT;
    CREATE TABLE hints (number INTEGER PRIMARY KEY, hints BLOB NOT NULL) STRICT;
    -- Stored batches without hints: a short list, so that the first gap is found without a walk over all batches.
    CREATE TABLE batches_without_hints (number INTEGER PRIMARY KEY) STRICT;

    -- balance, withdrawn: u128 big-endian. nonce: u64 big-endian. Each live nonce is a row, so that a batch writes what
    -- it changes, whatever its payers have used before; by expiry, so that what comes and goes together stands together.
    CREATE TABLE accounts (payer BLOB PRIMARY KEY, balance BLOB NOT NULL, withdrawn BLOB NOT NULL)
        STRICT, WITHOUT ROWID;
    CREATE TABLE fee_nonces (
        expiry INTEGER NOT NULL, payer BLOB NOT NULL, nonce BLOB NOT NULL, PRIMARY KEY (expiry, payer, nonce)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE held (
        number INTEGER NOT NULL, item INTEGER NOT NULL, payer BLOB NOT NULL, amount BLOB NOT NULL,
        PRIMARY KEY (number, item)
    ) STRICT, WITHOUT ROWID;
    -- The ledger's entries as they were before a batch: how to go back from one that is not certified, and how to prove
    -- an account in a ledger that is not the newest. Rows of batches above the floor stay; without a floor, those of
    -- batches that are not certified. Nulls: there was none.
    CREATE TABLE account_changes (
        number INTEGER NOT NULL, payer BLOB NOT NULL, balance_before BLOB, withdrawn_before BLOB,
        PRIMARY KEY (number, payer)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE nonce_changes (
        number INTEGER NOT NULL, payer BLOB NOT NULL, nonce BLOB NOT NULL,
        expiry_before INTEGER, expiry_after INTEGER, PRIMARY KEY (number, payer, nonce)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE ledger_floor (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL) STRICT;
    -- The same of what was held, while the batch is not certified.
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

    -- The coprocessor. A version counts confidential transactions that were applied, a sequence all of them;
    -- accounts, nodes and balances are kept as they stand at the end of a batch. tree: 0 of the accounts, 1 of
    -- the public balances. balance, nonce, confidential: u64 big-endian.
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
    // 7: held_changes stay above the ledgers' floor. Of the batches that are here already they may be gone.
    "
    CREATE TABLE held_floor (only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL) STRICT;
    INSERT INTO held_floor (only, number) SELECT 1, COALESCE(MAX(number), 0) FROM batches;
    ",
    // 8: what gave way to another acknowledgement of its number. It may come back in a certificate.
    "
    CREATE TABLE displaced_acknowledgements (
        number INTEGER NOT NULL, header_hash BLOB NOT NULL, PRIMARY KEY (number, header_hash)
    ) STRICT, WITHOUT ROWID;
    ",
    // 9: who leads, which only a server can tell: a file has one process.
    "",
    // 10: what a version changed is found without a walk over all accounts, nodes and balances.
    "
    CREATE INDEX confidential_accounts_by_version ON confidential_accounts (version);
    CREATE INDEX confidential_nodes_by_version ON confidential_nodes (version);
    CREATE INDEX public_balances_by_version ON public_balances (version);
    ",
];

/// Whether the file has this program's schema: a reader brings nothing up to date. It may be anybody's: what computes
/// something when it is read is in no store of ours.
pub(super) fn check(connection: &Connection) -> Result<(), StoreError> {
    let others = "SELECT COUNT(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'";
    if connection.query_row(others, [], |row| row.get::<_, i64>(0))? != 0 {
        let reason = "it has views, triggers or virtual tables: it is none of this program's stores";
        return Err(StoreError::Failed(reason.to_owned()));
    }
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found.cmp(&SCHEMA_VERSION) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(StoreError::NewerSchema { found, known: SCHEMA_VERSION }),
        std::cmp::Ordering::Less => Err(StoreError::Failed(format!(
            "schema {found}, this program's is {SCHEMA_VERSION}: start the role that writes it with this program first"
        ))),
    }
}

/// Brings the file to [`SCHEMA_VERSION`]; each step is one transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    loop {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let step = match found {
            0 => Some(0),
            1..FIRST_SCHEMA => return Err(StoreError::OlderSchema { found, oldest: FIRST_SCHEMA }),
            FIRST_SCHEMA..=SCHEMA_VERSION => usize::try_from(found - FIRST_SCHEMA + 1).ok(),
            _ => return Err(StoreError::NewerSchema { found, known: SCHEMA_VERSION }),
        };
        let Some((step, sql)) = step.and_then(|step| Some((step, MIGRATIONS.get(step)?))) else {
            return Ok(());
        };
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", FIRST_SCHEMA + step as i64)?;
        transaction.commit()?;
    }
}
