-- Schema 9: several processes may take the store, one after the other.

-- term: how often the store was taken. leader: where clients reach whoever took it last. expires_at: by the server's clock, when another may
-- take it although nobody gave it back; each transaction that writes sets it anew. Without it, only who gives it back lets go of it.
ALTER TABLE writer
    ADD COLUMN term BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN leader TEXT,
    ADD COLUMN expires_at TIMESTAMPTZ;
