-- Schema 8: the tables of SQLite's schema 8, column for column (tests/engines.rs compares the two), and who writes.

CREATE TABLE schema_version ("only" BIGINT PRIMARY KEY CHECK ("only" = 1), version BIGINT NOT NULL);

-- holder: drawn by the process that writes, when it took the store. commits: the number of the last of its transactions that stands, so that one whose
-- answer was lost can be told. Every transaction that writes changes this row, and none of anybody else's stands.
CREATE TABLE writer ("only" BIGINT PRIMARY KEY CHECK ("only" = 1), holder BIGINT NOT NULL, commits BIGINT NOT NULL);
INSERT INTO writer ("only", holder, commits) VALUES (1, 0, 0);

CREATE TABLE meta (key TEXT PRIMARY KEY, value BYTEA NOT NULL);

-- number: the batch it is sealed in while that batch is not certified.
-- rowid: by arrival, where two arrived in one millisecond.
CREATE TABLE envelopes (
    id BYTEA PRIMARY KEY, bytes BYTEA NOT NULL, arrived_ms BIGINT NOT NULL, seal_by BIGINT, number BIGINT,
    rowid BIGINT GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX envelopes_by_number ON envelopes (number);
CREATE TABLE envelope_outcomes (id BYTEA PRIMARY KEY, outcome TEXT NOT NULL, number BIGINT NOT NULL);
CREATE INDEX envelope_outcomes_by_number ON envelope_outcomes (number);

-- What arrives later has tables of its own, so that a certificate does not rewrite the batch.
CREATE TABLE batches (number BIGINT PRIMARY KEY, hash BYTEA NOT NULL, sealed BYTEA NOT NULL, head BYTEA NOT NULL);
CREATE TABLE items (
    number BIGINT NOT NULL, item BIGINT NOT NULL, id BYTEA NOT NULL, fault TEXT, PRIMARY KEY (number, item)
);
CREATE INDEX items_by_id ON items (id);
-- origin: the header's L1 origin. displaced_by: the number of the header that L1 made below, after that origin, with
-- which this one can never be posted.
CREATE TABLE acknowledgements (
    number BIGINT PRIMARY KEY, header_hash BYTEA NOT NULL, origin BIGINT NOT NULL, displaced_by BIGINT
);
-- What was signed stays, whoever asks: only what a header of L1's displaced gives way, to one more.
CREATE FUNCTION acknowledgement_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.number = OLD.number
        AND (NEW.header_hash = OLD.header_hash AND NEW.origin = OLD.origin OR OLD.displaced_by IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'what was signed for number % stays', OLD.number;
END
$$;
CREATE TRIGGER acknowledgement_stays BEFORE UPDATE OR DELETE ON acknowledgements
    FOR EACH ROW EXECUTE FUNCTION acknowledgement_stays();
CREATE TABLE certificates (number BIGINT PRIMARY KEY, certificate BYTEA NOT NULL);
-- Headers that L1 made, which need no certificate.
CREATE TABLE l1_headers (number BIGINT PRIMARY KEY);
CREATE TABLE releases (number BIGINT PRIMARY KEY, release BYTEA NOT NULL);
CREATE TABLE hints (number BIGINT PRIMARY KEY, hints BYTEA NOT NULL);
-- Stored batches without hints: a short list, so that the first gap is found without a walk over all batches.
CREATE TABLE batches_without_hints (number BIGINT PRIMARY KEY);

-- balance, withdrawn: u128 big-endian. nonce: u64 big-endian. Each live nonce is a row, so that a batch writes what
-- it changes, whatever its payers have used before; by expiry, so that what comes and goes together stands together.
CREATE TABLE accounts (payer BYTEA PRIMARY KEY, balance BYTEA NOT NULL, withdrawn BYTEA NOT NULL);
CREATE TABLE fee_nonces (
    expiry BIGINT NOT NULL, payer BYTEA NOT NULL, nonce BYTEA NOT NULL, PRIMARY KEY (expiry, payer, nonce)
);
CREATE TABLE held (
    number BIGINT NOT NULL, item BIGINT NOT NULL, payer BYTEA NOT NULL, amount BYTEA NOT NULL,
    PRIMARY KEY (number, item)
);
-- The ledger's entries as they were before a batch: how to go back from one that is not certified, and how to prove
-- an account in a ledger that is not the newest. Rows of batches above the floor stay; without a floor, those of
-- batches that are not certified. Nulls: there was none.
CREATE TABLE account_changes (
    number BIGINT NOT NULL, payer BYTEA NOT NULL, balance_before BYTEA, withdrawn_before BYTEA,
    PRIMARY KEY (number, payer)
);
CREATE TABLE nonce_changes (
    number BIGINT NOT NULL, payer BYTEA NOT NULL, nonce BYTEA NOT NULL,
    expiry_before BIGINT, expiry_after BIGINT, PRIMARY KEY (number, payer, nonce)
);
CREATE TABLE ledger_floor ("only" BIGINT PRIMARY KEY CHECK ("only" = 1), number BIGINT NOT NULL);
-- The same of what was held, while the batch is not certified.
CREATE TABLE held_changes (
    number BIGINT NOT NULL, held_number BIGINT NOT NULL, before BYTEA NOT NULL,
    PRIMARY KEY (number, held_number)
);

CREATE TABLE blocks (
    number BIGINT PRIMARY KEY, second BIGINT NOT NULL UNIQUE, hash BYTEA NOT NULL, parent_hash BYTEA NOT NULL,
    state_root BYTEA NOT NULL, first_batch BIGINT NOT NULL, last_batch BIGINT NOT NULL,
    transactions TEXT NOT NULL, payload BYTEA NOT NULL
);
CREATE INDEX blocks_by_last_batch ON blocks (last_batch);
CREATE TABLE posts (up_to_number BIGINT PRIMARY KEY, l1_transaction BYTEA NOT NULL);

-- The coprocessor. A version counts confidential transactions that were applied, a sequence all of them;
-- accounts, nodes and balances are kept as they stand at the end of a batch. tree: 0 of the accounts, 1 of
-- the public balances. balance, nonce, confidential: u64 big-endian.
CREATE TABLE confidential_batches (
    number BIGINT PRIMARY KEY, hash BYTEA NOT NULL, sequence BIGINT NOT NULL, version BIGINT NOT NULL,
    accounts BIGINT NOT NULL, public_accounts BIGINT NOT NULL, accounts_root BYTEA NOT NULL,
    public_root BYTEA NOT NULL, confidential BYTEA NOT NULL, state_root BYTEA NOT NULL
);
CREATE INDEX confidential_batches_by_version ON confidential_batches (version);
CREATE TABLE confidential_owners (owner BYTEA PRIMARY KEY, account BIGINT NOT NULL);
CREATE TABLE confidential_accounts (
    account BIGINT NOT NULL, version BIGINT NOT NULL, owner BYTEA NOT NULL, state BYTEA NOT NULL,
    PRIMARY KEY (account, version)
);
CREATE TABLE confidential_nodes (
    tree BIGINT NOT NULL, level BIGINT NOT NULL, place BIGINT NOT NULL, version BIGINT NOT NULL,
    hash BYTEA NOT NULL, PRIMARY KEY (tree, level, place, version)
);
CREATE TABLE public_balances (
    owner BYTEA NOT NULL, version BIGINT NOT NULL, account BIGINT NOT NULL, balance BYTEA NOT NULL,
    nonce BYTEA NOT NULL, PRIMARY KEY (owner, version)
);
CREATE TABLE confidential_transactions (
    sequence BIGINT PRIMARY KEY, version BIGINT NOT NULL, number BIGINT NOT NULL, id BYTEA NOT NULL,
    item BIGINT NOT NULL, position BIGINT NOT NULL, applied BIGINT NOT NULL, bytes BYTEA NOT NULL,
    receipt TEXT NOT NULL, state_root BYTEA NOT NULL
);
CREATE INDEX confidential_transactions_by_version ON confidential_transactions (version);
CREATE INDEX confidential_transactions_by_number ON confidential_transactions (number);
CREATE INDEX confidential_transactions_by_id ON confidential_transactions (id);
CREATE TABLE confidential_parties (
    party BYTEA NOT NULL, sequence BIGINT NOT NULL, PRIMARY KEY (party, sequence)
);

CREATE TABLE held_floor ("only" BIGINT PRIMARY KEY CHECK ("only" = 1), number BIGINT NOT NULL);
CREATE TABLE displaced_acknowledgements (
    number BIGINT NOT NULL, header_hash BYTEA NOT NULL, PRIMARY KEY (number, header_hash)
);
