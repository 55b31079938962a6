-- The state of one daemon (docs/state.md says what each column means). Times are microseconds since 1970, UTC.
CREATE TABLE meta    (key TEXT PRIMARY KEY, value ANY) STRICT;
CREATE TABLE owner   (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, instance TEXT, since_us INTEGER) STRICT;
CREATE TABLE sources (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, destination TEXT, frontier_us INTEGER NOT NULL, tip_us INTEGER NOT NULL,
                      collected INTEGER NOT NULL DEFAULT 0, late INTEGER NOT NULL DEFAULT 0, last_record_us INTEGER,
                      profile TEXT, mode TEXT NOT NULL DEFAULT 'normal') STRICT;
-- until_us NULL: the live range; others are backfills.
CREATE TABLE ranges  (source INTEGER NOT NULL, from_us INTEGER NOT NULL, until_us INTEGER, reached_us INTEGER NOT NULL,
                      remembered_us INTEGER NOT NULL, PRIMARY KEY (source, from_us)) STRICT;
CREATE TABLE windows (source INTEGER NOT NULL, from_us INTEGER NOT NULL, until_us INTEGER NOT NULL, query TEXT NOT NULL,
                      state TEXT NOT NULL CHECK (state IN ('closed', 'gap', 'accepted')), total INTEGER, own INTEGER NOT NULL,
                      late INTEGER NOT NULL DEFAULT 0, seen INTEGER NOT NULL DEFAULT 0, digest BLOB, proof TEXT, closed_us INTEGER NOT NULL,
                      recounts INTEGER NOT NULL DEFAULT 0, next_us INTEGER, tries INTEGER NOT NULL DEFAULT 0, reason TEXT, words TEXT,
                      turn INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL,
                      late_delays TEXT, PRIMARY KEY (source, from_us)) STRICT, WITHOUT ROWID;
CREATE INDEX windows_due ON windows (source, next_us);
-- kind: low byte 1 records, 2 a line of the ledger; the next byte is the codec of body (0 as it is, 1 zstd).
CREATE TABLE segments (seq INTEGER PRIMARY KEY, n INTEGER NOT NULL, kind INTEGER NOT NULL, number INTEGER, source INTEGER NOT NULL,
                      min_us INTEGER, max_us INTEGER, received_us INTEGER NOT NULL, flags BLOB NOT NULL, uids BLOB NOT NULL,
                      ends BLOB NOT NULL, body BLOB NOT NULL, chain BLOB NOT NULL) STRICT;
CREATE TABLE seen    (source INTEGER NOT NULL, bucket INTEGER NOT NULL, seq INTEGER NOT NULL, uids BLOB NOT NULL,
                      PRIMARY KEY (source, bucket, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE head    (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, number INTEGER NOT NULL, chain BLOB NOT NULL,
                      pruned_seq INTEGER NOT NULL, pruned_chain BLOB NOT NULL) STRICT;
CREATE TABLE sinks   (id TEXT PRIMARY KEY, type TEXT NOT NULL, destination TEXT NOT NULL, state TEXT NOT NULL, from_seq INTEGER NOT NULL,
                      acked INTEGER NOT NULL, taken INTEGER NOT NULL, taken_chain BLOB NOT NULL, note TEXT, from_us INTEGER, reason TEXT,
                      begun_us INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE dead_letters (sink TEXT NOT NULL, seq INTEGER NOT NULL, source INTEGER NOT NULL, uid BLOB NOT NULL, time_us INTEGER, received_us INTEGER NOT NULL,
                      body BLOB, code TEXT NOT NULL, words TEXT NOT NULL, tries INTEGER NOT NULL, at_us INTEGER NOT NULL, state TEXT NOT NULL,
                      PRIMARY KEY (sink, seq)) STRICT;
CREATE TABLE operations (n INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, who TEXT, what TEXT NOT NULL, detail TEXT) STRICT;
-- What is open, or was once: a handful of rows among many.
CREATE INDEX windows_open ON windows (source, state) WHERE state <> 'closed' OR reason IS NOT NULL;
