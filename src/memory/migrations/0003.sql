-- Migration 3: what search, links and recall need.

-- The few episodes that searches have returned.
CREATE INDEX strength_raised ON strength (strength) WHERE strength > 1;

-- Numbers of vectors come from the store's revisions from here on, so that none is ever given twice.
UPDATE store SET next_revision = max(next_revision, (SELECT coalesce(max(row_id), 0) + 1 FROM embeddings));

-- What recall walks. All of it is made from episodes and edges, and kept by the triggers below and by `mentions.rs`.
CREATE TABLE names (
    name_id   INTEGER PRIMARY KEY,
    key       TEXT    NOT NULL UNIQUE,
    is_sought INTEGER NOT NULL CHECK (is_sought IN (0, 1)),
    sort      INTEGER NOT NULL CHECK (sort BETWEEN 0 AND 3)
) STRICT;

ALTER TABLE kg_nodes ADD COLUMN name_id INTEGER REFERENCES names (name_id);
CREATE INDEX kg_nodes_by_name ON kg_nodes (name_id);

CREATE TABLE mentions (
    episode_id TEXT    NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    name_id    INTEGER NOT NULL REFERENCES names (name_id) ON DELETE CASCADE,
    timestamp  INTEGER NOT NULL,
    is_fact    INTEGER NOT NULL CHECK (is_fact IN (0, 1)),
    PRIMARY KEY (episode_id, name_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX mentions_by_name ON mentions (name_id, timestamp, is_fact);

CREATE TABLE ties (
    a     INTEGER NOT NULL REFERENCES names (name_id) ON DELETE CASCADE,
    b     INTEGER NOT NULL REFERENCES names (name_id) ON DELETE CASCADE,
    facts INTEGER NOT NULL,
    PRIMARY KEY (a, b),
    CHECK (a < b)
) STRICT, WITHOUT ROWID;

CREATE INDEX ties_by_b ON ties (b, facts);

-- With the score in it, one look at the index gives the whole link.
DROP INDEX links_by_b;
CREATE INDEX links_by_b ON links (b, score);

CREATE TRIGGER kg_edges_named AFTER INSERT ON kg_edges BEGIN
    INSERT INTO mentions (episode_id, name_id, timestamp, is_fact)
        SELECT e.id, n.name_id, e.timestamp, 1 FROM episodes AS e JOIN kg_nodes AS n
        WHERE e.id = new.source_episode_id AND n.id IN (new.src_id, new.dst_id) AND n.name_id IS NOT NULL
        ON CONFLICT DO UPDATE SET is_fact = 1;
    INSERT INTO ties (a, b, facts)
        SELECT min(s.name_id, d.name_id), max(s.name_id, d.name_id), 1 FROM kg_nodes AS s JOIN kg_nodes AS d
        WHERE s.id = new.src_id AND d.id = new.dst_id AND s.name_id <> d.name_id
        ON CONFLICT DO UPDATE SET facts = facts + 1;
END;
CREATE TRIGGER kg_edges_unnamed AFTER DELETE ON kg_edges BEGIN
    DELETE FROM mentions WHERE episode_id = old.source_episode_id AND is_fact = 1
        AND name_id IN (SELECT name_id FROM kg_nodes WHERE id IN (old.src_id, old.dst_id))
        AND NOT EXISTS (SELECT 1 FROM kg_edges AS k JOIN kg_nodes AS n ON n.id IN (k.src_id, k.dst_id)
                        WHERE k.source_episode_id = old.source_episode_id AND n.name_id = mentions.name_id);
    UPDATE ties SET facts = facts - 1 WHERE (a, b) = (
        SELECT min(s.name_id, d.name_id), max(s.name_id, d.name_id) FROM kg_nodes AS s JOIN kg_nodes AS d
        WHERE s.id = old.src_id AND d.id = old.dst_id);
    DELETE FROM ties WHERE facts <= 0 AND (a, b) = (
        SELECT min(s.name_id, d.name_id), max(s.name_id, d.name_id) FROM kg_nodes AS s JOIN kg_nodes AS d
        WHERE s.id = old.src_id AND d.id = old.dst_id);
END;
CREATE TRIGGER kg_nodes_unnamed AFTER DELETE ON kg_nodes WHEN old.name_id IS NOT NULL BEGIN
    DELETE FROM names WHERE name_id = old.name_id
        AND NOT EXISTS (SELECT 1 FROM kg_nodes WHERE name_id = old.name_id);
END;
CREATE TRIGGER mentions_content AFTER UPDATE OF content ON episodes WHEN old.content IS NOT new.content BEGIN
    DELETE FROM mentions WHERE episode_id = new.id AND is_fact = 0;
END;
CREATE TRIGGER mentions_time AFTER UPDATE OF timestamp ON episodes WHEN old.timestamp IS NOT new.timestamp BEGIN
    UPDATE mentions SET timestamp = new.timestamp WHERE episode_id = new.id;
END;
