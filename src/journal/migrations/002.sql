-- What a person asked for with a range of history, as JSON (BackfillOrder of src/model/ledger.ts); NULL for the live range.
ALTER TABLE ranges ADD COLUMN backfill TEXT;
