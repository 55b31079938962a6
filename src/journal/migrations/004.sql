-- What a person has ordered of a sink, as JSON (SinkOrders of src/model/journal.ts); NULL: nothing.
ALTER TABLE sinks ADD COLUMN orders TEXT;
