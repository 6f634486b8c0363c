-- Migration 1: every table of the store. docs/schema.md says what each column means.
-- Times are UTC milliseconds. A row is pending for sync while acked_revision < revision.

CREATE TABLE store (
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    device_id     TEXT    NOT NULL,
    store_id      TEXT    NOT NULL,
    next_revision INTEGER NOT NULL
) STRICT;

CREATE TABLE episodes (
    row_id         INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    external_id    TEXT,
    device_id      TEXT    NOT NULL,
    store_id       TEXT    NOT NULL,
    session_id     TEXT    NOT NULL,
    source         TEXT    NOT NULL,
    timestamp      INTEGER NOT NULL,
    ended_at       INTEGER NOT NULL,
    boot_id        TEXT    NOT NULL,
    monotonic_ms   INTEGER NOT NULL,
    clock_quality  TEXT    NOT NULL CHECK (clock_quality IN ('unset', 'rtc', 'network', 'gps')),
    modality       TEXT    NOT NULL,
    tool_name      TEXT    NOT NULL,
    content        TEXT    NOT NULL,
    importance     INTEGER NOT NULL CHECK (importance BETWEEN 0 AND 10),
    decay_class    TEXT    NOT NULL CHECK (decay_class IN ('session', 'daily', 'procedural', 'permanent')),
    metadata       TEXT    NOT NULL,
    digest         BLOB    NOT NULL,
    stored_at      INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    acked_revision INTEGER NOT NULL DEFAULT 0,
    -- How long the span is, in classes, so that "which spans overlap this one" is a bounded index scan.
    span_class     INTEGER GENERATED ALWAYS AS (CASE
        WHEN ended_at - timestamp <= 5000 THEN 0
        WHEN ended_at - timestamp <= 60000 THEN 1
        WHEN ended_at - timestamp <= 600000 THEN 2
        WHEN ended_at - timestamp <= 3600000 THEN 3
        WHEN ended_at - timestamp <= 28800000 THEN 4
        WHEN ended_at - timestamp <= 259200000 THEN 5
        ELSE 6 END) VIRTUAL,
    -- The filters over metadata. Broken JSON and values of another type read as NULL.
    sound_class    TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(metadata) THEN
        CASE WHEN json_type(metadata, '$.sound_class') = 'text' THEN json_extract(metadata, '$.sound_class') END END) VIRTUAL,
    rms_db         REAL GENERATED ALWAYS AS (CASE WHEN json_valid(metadata) THEN
        CASE WHEN json_type(metadata, '$.rms_db') IN ('real', 'integer') THEN CAST(json_extract(metadata, '$.rms_db') AS REAL)
             WHEN json_type(metadata, '$.rmsDb') IN ('real', 'integer') THEN CAST(json_extract(metadata, '$.rmsDb') AS REAL)
        END END) VIRTUAL,
    place          TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(metadata) THEN
        CASE WHEN json_type(metadata, '$.place') = 'text' THEN json_extract(metadata, '$.place') END END) VIRTUAL,
    person         TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(metadata) THEN
        CASE WHEN json_type(metadata, '$.person') = 'text' THEN json_extract(metadata, '$.person') END END) VIRTUAL,
    multimodal_episode_id TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(metadata) THEN
        CASE WHEN json_type(metadata, '$.multimodal_episode_id') = 'text'
             THEN json_extract(metadata, '$.multimodal_episode_id') END END) VIRTUAL
) STRICT;

CREATE UNIQUE INDEX episodes_by_external ON episodes (device_id, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX episodes_by_multimodal ON episodes (multimodal_episode_id) WHERE multimodal_episode_id IS NOT NULL;
CREATE INDEX episodes_by_time ON episodes (timestamp, id);
CREATE INDEX episodes_by_modality ON episodes (modality, timestamp);
CREATE INDEX episodes_by_session ON episodes (session_id, timestamp);
CREATE INDEX episodes_by_source ON episodes (source, timestamp);
CREATE INDEX episodes_by_decay ON episodes (decay_class, timestamp);
CREATE INDEX episodes_by_span ON episodes (device_id, span_class, timestamp, id);
CREATE INDEX episodes_by_boot ON episodes (boot_id, monotonic_ms);
CREATE INDEX episodes_by_sound ON episodes (sound_class, timestamp) WHERE sound_class IS NOT NULL;
CREATE INDEX episodes_by_level ON episodes (rms_db) WHERE rms_db IS NOT NULL;
CREATE INDEX episodes_by_place ON episodes (place, timestamp) WHERE place IS NOT NULL;
CREATE INDEX episodes_by_person ON episodes (person, timestamp) WHERE person IS NOT NULL;
CREATE INDEX episodes_pending ON episodes (revision) WHERE acked_revision < revision;

CREATE TABLE strength (
    episode_id     TEXT    NOT NULL PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE,
    strength       REAL    NOT NULL DEFAULT 1.0,
    revision       INTEGER NOT NULL DEFAULT 0,
    acked_revision INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX strength_pending ON strength (revision) WHERE acked_revision < revision;

CREATE TABLE embeddings (
    row_id     INTEGER PRIMARY KEY,
    episode_id TEXT    NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    model_id   TEXT    NOT NULL,
    kind       TEXT    NOT NULL CHECK (kind IN ('image', 'text', 'audio')),
    dims       INTEGER NOT NULL CHECK (dims > 0),
    vector     BLOB    NOT NULL CHECK (length(vector) = 4 * dims),
    UNIQUE (episode_id, model_id, kind)
) STRICT;

CREATE INDEX embeddings_by_model ON embeddings (model_id, kind);

-- External content: the words are kept once, in `episodes`, and FTS5's 'secure-delete' option can be set before forgetting.
CREATE VIRTUAL TABLE episodes_fts USING fts5 (
    content,
    content = 'episodes',
    content_rowid = 'row_id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER episodes_fts_insert AFTER INSERT ON episodes BEGIN
    INSERT INTO episodes_fts (rowid, content) VALUES (new.row_id, new.content);
END;
CREATE TRIGGER episodes_fts_delete AFTER DELETE ON episodes BEGIN
    INSERT INTO episodes_fts (episodes_fts, rowid, content) VALUES ('delete', old.row_id, old.content);
END;
CREATE TRIGGER episodes_fts_update AFTER UPDATE OF content ON episodes WHEN old.content IS NOT new.content BEGIN
    INSERT INTO episodes_fts (episodes_fts, rowid, content) VALUES ('delete', old.row_id, old.content);
    INSERT INTO episodes_fts (rowid, content) VALUES (new.row_id, new.content);
END;

CREATE TABLE kg_nodes (
    id        INTEGER PRIMARY KEY,
    text      TEXT NOT NULL,
    node_type TEXT NOT NULL,
    UNIQUE (text, node_type)
) STRICT;

CREATE TABLE kg_edges (
    id                TEXT    NOT NULL PRIMARY KEY,
    src_id            INTEGER NOT NULL REFERENCES kg_nodes (id),
    dst_id            INTEGER NOT NULL REFERENCES kg_nodes (id),
    relation          TEXT    NOT NULL,
    fact              TEXT    NOT NULL,
    edge_type         TEXT    NOT NULL,
    source_episode_id TEXT    NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    modality          TEXT    NOT NULL,
    valid_from        INTEGER NOT NULL,
    valid_to          INTEGER,
    stated_to         INTEGER,
    store_id          TEXT    NOT NULL,
    revision          INTEGER NOT NULL,
    acked_revision    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX kg_edges_by_source ON kg_edges (src_id, relation, valid_from, id);
CREATE INDEX kg_edges_by_target ON kg_edges (dst_id, relation, valid_from);
CREATE INDEX kg_edges_by_episode ON kg_edges (source_episode_id);
CREATE INDEX kg_edges_pending ON kg_edges (revision) WHERE acked_revision < revision;

CREATE TABLE links (
    a      TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    b      TEXT NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    reason TEXT NOT NULL,
    score  REAL NOT NULL,
    PRIMARY KEY (a, b, reason),
    CHECK (a < b)
) STRICT, WITHOUT ROWID;

CREATE INDEX links_by_b ON links (b);

CREATE TABLE coverage (
    id                TEXT    NOT NULL PRIMARY KEY,
    device_id         TEXT    NOT NULL,
    store_id          TEXT    NOT NULL,
    session_id        TEXT    NOT NULL,
    sensor            TEXT    NOT NULL,
    "from"            INTEGER NOT NULL,
    "to"              INTEGER NOT NULL,
    state             TEXT    NOT NULL,
    reason            TEXT    NOT NULL,
    detail            TEXT,
    boot_id           TEXT    NOT NULL,
    from_monotonic_ms INTEGER NOT NULL,
    clock_quality     TEXT    NOT NULL CHECK (clock_quality IN ('unset', 'rtc', 'network', 'gps')),
    stored_at         INTEGER NOT NULL,
    revision          INTEGER NOT NULL,
    acked_revision    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX coverage_by_sensor ON coverage (sensor, "from");
CREATE INDEX coverage_by_time ON coverage ("from");
CREATE INDEX coverage_by_session ON coverage (session_id);
CREATE INDEX coverage_by_boot ON coverage (boot_id, from_monotonic_ms);
CREATE INDEX coverage_pending ON coverage (revision) WHERE acked_revision < revision;

CREATE TABLE media (
    hash           TEXT    NOT NULL PRIMARY KEY,
    path           TEXT    NOT NULL UNIQUE,
    bytes          INTEGER NOT NULL,
    kind           TEXT    NOT NULL,
    store_id       TEXT    NOT NULL,
    stored_at      INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    acked_revision INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX media_pending ON media (revision) WHERE acked_revision < revision;

CREATE TABLE episode_media (
    episode_id TEXT    NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    hash       TEXT    NOT NULL REFERENCES media (hash),
    ordinal    INTEGER NOT NULL,
    PRIMARY KEY (episode_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE INDEX episode_media_by_hash ON episode_media (hash);

CREATE TABLE sessions (
    session_id    TEXT    NOT NULL,
    device_id     TEXT    NOT NULL,
    boot_id       TEXT    NOT NULL,
    digest        TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    clock_quality TEXT    NOT NULL CHECK (clock_quality IN ('unset', 'rtc', 'network', 'gps')),
    state         TEXT    NOT NULL CHECK (state IN ('running', 'done')),
    counts        TEXT    NOT NULL DEFAULT '{}',
    stored_at     INTEGER NOT NULL,
    PRIMARY KEY (session_id, device_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE clock_corrections (
    device_id           TEXT    NOT NULL,
    scope               TEXT    NOT NULL CHECK (scope IN ('session', 'boot')),
    scope_id            TEXT    NOT NULL,
    before_monotonic_ms INTEGER NOT NULL,
    delta_ms            INTEGER NOT NULL,
    clock_quality       TEXT    NOT NULL CHECK (clock_quality IN ('unset', 'rtc', 'network', 'gps')),
    stored_at           INTEGER NOT NULL,
    PRIMARY KEY (scope, scope_id, device_id, before_monotonic_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstones (
    id             TEXT    NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind IN ('episode', 'coverage')),
    reason         TEXT    NOT NULL CHECK (reason IN ('expired', 'replaced', 'forgotten')),
    device_id      TEXT    NOT NULL,
    store_id       TEXT    NOT NULL,
    stored_at      INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    acked_revision INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id, kind)
) STRICT, WITHOUT ROWID;

CREATE INDEX tombstones_pending ON tombstones (revision) WHERE acked_revision < revision;
