-- The state of one daemon (docs/state.md explains each column). Times are microseconds since 1970, UTC.
CREATE TABLE meta    (key TEXT PRIMARY KEY, value ANY) STRICT;
CREATE TABLE owner   (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, instance TEXT, since_us INTEGER) STRICT;
CREATE TABLE sources (source_no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, destination TEXT, frontier_us INTEGER NOT NULL,
                      polled_until_us INTEGER NOT NULL, collected INTEGER NOT NULL DEFAULT 0, late INTEGER NOT NULL DEFAULT 0,
                      last_record_us INTEGER, profile TEXT, state TEXT NOT NULL DEFAULT 'active') STRICT;
-- to_us NULL: the live range; the others are backfills. backfill: the order of an operator as JSON (BackfillOrder of src/model/ledger.ts).
-- collected_us: the time of the newest record collected of a backfill, which is not cut off before it.
CREATE TABLE ranges  (source INTEGER NOT NULL, from_us INTEGER NOT NULL, to_us INTEGER, closed_until_us INTEGER NOT NULL,
                      uids_kept_since_us INTEGER NOT NULL, backfill TEXT, collected_us INTEGER, PRIMARY KEY (source, from_us)) STRICT;
CREATE TABLE windows (source INTEGER NOT NULL, from_us INTEGER NOT NULL, to_us INTEGER NOT NULL, query TEXT NOT NULL,
                      state TEXT NOT NULL CHECK (state IN ('proven', 'gap', 'accepted')), total INTEGER, records INTEGER NOT NULL,
                      late INTEGER NOT NULL DEFAULT 0, received INTEGER NOT NULL DEFAULT 0, digest BLOB, proof TEXT, closed_us INTEGER NOT NULL,
                      recounts INTEGER NOT NULL DEFAULT 0, next_us INTEGER, attempts INTEGER NOT NULL DEFAULT 0, reason TEXT, message TEXT,
                      revision INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL,
                      late_delays TEXT, PRIMARY KEY (source, from_us)) STRICT, WITHOUT ROWID;
CREATE INDEX windows_due ON windows (source, next_us);
-- Open windows, and those that were open once: few among many.
CREATE INDEX windows_open ON windows (source, state) WHERE state <> 'proven' OR reason IS NOT NULL;
-- kind: low byte 1 records, 2 a line of the ledger; the next byte is the codec of body (0 as it is, 1 zstd).
CREATE TABLE segments (seq INTEGER PRIMARY KEY, n INTEGER NOT NULL, kind INTEGER NOT NULL, number INTEGER, source INTEGER NOT NULL,
                      min_us INTEGER, max_us INTEGER, received_us INTEGER NOT NULL, flags BLOB NOT NULL, uids BLOB NOT NULL,
                      ends BLOB NOT NULL, body BLOB NOT NULL, chain BLOB NOT NULL) STRICT;
CREATE TABLE seen    (source INTEGER NOT NULL, bucket INTEGER NOT NULL, seq INTEGER NOT NULL, uids BLOB NOT NULL,
                      PRIMARY KEY (source, bucket, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE head    (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, number INTEGER NOT NULL, chain BLOB NOT NULL,
                      pruned_seq INTEGER NOT NULL, pruned_chain BLOB NOT NULL) STRICT;
-- orders: SinkOrders of src/model/journal.ts as JSON. selection: which records the sink takes (StoredSelection of src/journal/selection.ts) as
-- JSON: its sources, its filter, and for each source since when, if later than the sink's start; NULL until a daemon has used the sink.
CREATE TABLE sinks   (id TEXT PRIMARY KEY, type TEXT NOT NULL, destination TEXT NOT NULL, state TEXT NOT NULL, from_seq INTEGER NOT NULL,
                      acknowledged INTEGER NOT NULL, delivered INTEGER NOT NULL, delivered_chain BLOB NOT NULL, resume_note TEXT, from_us INTEGER,
                      reason TEXT, begun_us INTEGER NOT NULL DEFAULT 0, orders TEXT, selection TEXT) STRICT;
-- Replays that are not complete, with their progress. progress: RangeReplay or ArchiveReplay of src/model/journal.ts as JSON.
CREATE TABLE replays (sink TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('range', 'archive')), began_ms INTEGER NOT NULL, progress TEXT NOT NULL,
                      PRIMARY KEY (sink, kind)) STRICT, WITHOUT ROWID;
-- Delivered records that a sink lost afterwards (a file was truncated or deleted): entries [first, last], with the times [from_us, to_us) that they
-- may have. The ledger does not count windows of that time as delivered.
CREATE TABLE sink_losses (sink TEXT NOT NULL, source INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, from_us INTEGER NOT NULL,
                          to_us INTEGER NOT NULL, at_us INTEGER NOT NULL, message TEXT NOT NULL, PRIMARY KEY (sink, source, first)) STRICT, WITHOUT ROWID;
-- kind: as in segments.
CREATE TABLE dead_letters (sink TEXT NOT NULL, seq INTEGER NOT NULL, source INTEGER NOT NULL, uid BLOB NOT NULL, time_us INTEGER, received_us INTEGER NOT NULL,
                      body BLOB, code TEXT NOT NULL, message TEXT NOT NULL, attempts INTEGER NOT NULL, at_us INTEGER NOT NULL, state TEXT NOT NULL,
                      kind INTEGER NOT NULL, PRIMARY KEY (sink, seq)) STRICT;
CREATE TABLE operations (operation_no INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, actor TEXT, operation TEXT NOT NULL, detail TEXT) STRICT;
