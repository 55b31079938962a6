-- Delivered records that a sink lost afterwards (a file that was truncated or deleted): entries [first, last], by source the times [from_us, until_us] that
-- they may have. The ledger does not count windows of that time as delivered.
CREATE TABLE sink_losses (sink TEXT NOT NULL, source INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, from_us INTEGER NOT NULL,
                          until_us INTEGER NOT NULL, at_us INTEGER NOT NULL, words TEXT NOT NULL, PRIMARY KEY (sink, source, first)) STRICT, WITHOUT ROWID;
