-- Which records a sink takes, as JSON (StoredSelection of src/journal/selection.ts): its sources, its `where`, and by source since when, if later than
-- its start; NULL: not known, no daemon of this release has used the sink.
ALTER TABLE sinks ADD COLUMN selection TEXT;
