-- Migration 2: what the disk budget and the check of media need.

-- A row stays while an episode names it, although its file was taken by the budget ('evicted') or has vanished ('missing').
ALTER TABLE media ADD COLUMN state TEXT NOT NULL DEFAULT 'kept' CHECK (state IN ('kept', 'evicted', 'missing'));

CREATE INDEX media_by_state ON media (state, acked_revision < revision);
CREATE INDEX media_kept_bytes ON media (bytes) WHERE state = 'kept';

-- Within one class and importance the value of an episode falls with its age, so the least valuable ones stand first.
CREATE INDEX episodes_by_value ON episodes (acked_revision < revision, decay_class, importance, clock_quality = 'unset', timestamp);
