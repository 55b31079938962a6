-- The time of the newest record that was collected of a range of history: it is not cut off before. Of one that was under way before this
-- nobody knows, so it cannot be cut off.
ALTER TABLE ranges ADD COLUMN collected_us INTEGER;
UPDATE ranges SET collected_us = until_us - 1 WHERE until_us IS NOT NULL AND reached_us < until_us;
