-- Schema 9: several processes may take the store, one after the other.

-- term: how often the store was taken. leader: where clients reach whoever took it last. lease_ms: for how long nothing of this row
-- changes before another may take the store although nobody gave it back, by the clock of whoever looks. Without it, only who gives it
-- back lets go of it.
ALTER TABLE writer
    ADD COLUMN term BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN leader TEXT,
    ADD COLUMN lease_ms BIGINT;
