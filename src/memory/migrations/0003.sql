-- Migration 3: what search needs.

-- The few episodes that searches have returned.
CREATE INDEX strength_raised ON strength (strength) WHERE strength > 1;
