-- Migration 3: what search and links need.

-- The few episodes that searches have returned.
CREATE INDEX strength_raised ON strength (strength) WHERE strength > 1;

-- Numbers of vectors come from the store's revisions from here on, so that none is ever given twice.
UPDATE store SET next_revision = max(next_revision, (SELECT coalesce(max(row_id), 0) + 1 FROM embeddings));
