-- +goose Up

-- Names say units: *_ms at a time is milliseconds since 1970 UTC, *_us a
-- duration (or, in requests, a time) in microseconds. NULL is "unknown" or
-- "did not happen", never zero.

CREATE TABLE crawls (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    status        TEXT    NOT NULL,
    reason        TEXT,
    seeds         TEXT    NOT NULL,               -- JSON array
    spec          TEXT,                           -- JSON of the effective settings
    started_ms    INTEGER,
    ended_ms      INTEGER,
    updated_ms    INTEGER,
    processed     INTEGER NOT NULL DEFAULT 0,
    successful    INTEGER NOT NULL DEFAULT 0,
    failed        INTEGER NOT NULL DEFAULT 0,
    throttled     INTEGER NOT NULL DEFAULT 0,
    blocked       INTEGER NOT NULL DEFAULT 0,
    skipped       INTEGER NOT NULL DEFAULT 0,
    timeouts      INTEGER NOT NULL DEFAULT 0,
    requests      INTEGER NOT NULL DEFAULT 0,
    http_429      INTEGER NOT NULL DEFAULT 0,
    retries       INTEGER NOT NULL DEFAULT 0,
    bytes         INTEGER NOT NULL DEFAULT 0
);

-- id = crawl_id * 2^40 + the page's number in its crawl. So a crawl's pages
-- lie together, in order, and a range of ids reads them without an index.
CREATE TABLE pages (
    id                INTEGER PRIMARY KEY,
    crawl_id          INTEGER NOT NULL,
    fp                BLOB    NOT NULL,           -- 16 bytes, identity of the URL
    url               TEXT    NOT NULL,
    host              TEXT    NOT NULL,
    kind              TEXT,                       -- page, sitemap
    via               TEXT,                       -- seed, link, redirect, sitemap, ...
    found_on          TEXT,
    depth             INTEGER NOT NULL,
    tries             INTEGER NOT NULL,
    outcome           TEXT    NOT NULL,
    status            INTEGER,                    -- HTTP status
    error             TEXT,
    content_type      TEXT,
    charset           TEXT,
    size              INTEGER,                    -- decoded bytes
    wire_size         INTEGER,
    dns_us            INTEGER,
    connect_us        INTEGER,
    tls_us            INTEGER,
    ttfb_us           INTEGER,
    transfer_us       INTEGER,
    total_us          INTEGER,
    conn_reused       INTEGER,
    fetched_ms        INTEGER,
    redirect_to       TEXT,
    title             TEXT,
    description       TEXT,
    canonical         TEXT,
    lang              TEXT,
    hreflang          TEXT,                       -- JSON object
    noindex           INTEGER,
    nofollow          INTEGER,
    last_modified_ms  INTEGER,
    content_hash      INTEGER,
    link_count        INTEGER,
    robots_allowed    INTEGER,                    -- NULL: no decision was made
    robots_rule       TEXT,
    robots_line       INTEGER,
    crawl_delay_ms    INTEGER,
    robots_fetched_ms INTEGER,
    robots_confidence REAL,
    robots_ignored    INTEGER
);
CREATE UNIQUE INDEX pages_by_fp ON pages (crawl_id, fp);

-- One blob a page instead of one row a link: the low halves of the
-- fingerprints of all link targets, eight little-endian bytes each.
CREATE TABLE page_links (
    page_id INTEGER PRIMARY KEY,
    targets BLOB NOT NULL
);

-- Every request on the wire. url is NULL where a page of the same crawl has
-- the same fp.
CREATE TABLE requests (
    crawl_id    INTEGER NOT NULL,
    permit      INTEGER NOT NULL,
    pace_group  TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    cause       TEXT,
    outcome     TEXT    NOT NULL,
    status      INTEGER,
    started_us  INTEGER,
    ended_us    INTEGER,
    gap_owed_us INTEGER NOT NULL,
    in_flight   INTEGER NOT NULL,
    cap         INTEGER NOT NULL,
    fp          BLOB    NOT NULL,
    url         TEXT,
    error       TEXT,
    PRIMARY KEY (crawl_id, permit)
) WITHOUT ROWID;

-- What was learned about hosts. The *_seconds columns are for people, rounded
-- up; the *_ms columns are the truth.
CREATE TABLE domains (
    host                         TEXT    PRIMARY KEY,
    adaptive_delay_seconds       INTEGER NOT NULL DEFAULT 0,
    adaptive_delay_floor_seconds INTEGER NOT NULL DEFAULT 0,
    crawl_delay_seconds          INTEGER,
    adaptive_delay_ms            INTEGER NOT NULL DEFAULT 0,
    adaptive_delay_floor_ms      INTEGER NOT NULL DEFAULT 0,
    crawl_delay_ms               INTEGER,
    probe_step_ms                INTEGER NOT NULL DEFAULT 0,
    error_streak                 INTEGER NOT NULL DEFAULT 0,
    success_streak               INTEGER NOT NULL DEFAULT 0,
    consecutive_failures         INTEGER NOT NULL DEFAULT 0,
    next_available_ms            INTEGER,
    blocked_until_ms             INTEGER,
    block_reason                 TEXT,
    last_success_ms              INTEGER,
    updated_ms                   INTEGER,
    state                        TEXT                -- JSON
) WITHOUT ROWID;

CREATE TABLE evidence_log (
    crawl_id   INTEGER NOT NULL,
    fp         BLOB    NOT NULL,
    type       TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    url        TEXT    NOT NULL,
    content    TEXT,                              -- JSON
    metadata   TEXT,                              -- JSON
    confidence REAL,
    PRIMARY KEY (crawl_id, fp, type, at_ms)
) WITHOUT ROWID;

-- Every stored reason in one shape. The robots decision lives in its page's
-- row, so that neither can exist without the other.
CREATE VIEW evidence AS
SELECT crawl_id,
       fp,
       url,
       CASE robots_allowed WHEN 1 THEN 'robots_allowed' ELSE 'blocked_by_robots' END AS type,
       coalesce(fetched_ms, robots_fetched_ms) AS at_ms,
       json_object(
           'allowed', json(CASE robots_allowed WHEN 1 THEN 'true' ELSE 'false' END),
           'matchedRule', robots_rule,
           'crawlDelay', crawl_delay_ms / 1000.0,
           'timestamp', strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(fetched_ms, robots_fetched_ms) / 1000.0, 'unixepoch')
       ) AS content,
       json_object(
           'url', url,
           'allowed', json(CASE robots_allowed WHEN 1 THEN 'true' ELSE 'false' END),
           'matchedRule', robots_rule,
           'crawlDelay', crawl_delay_ms / 1000.0
       ) AS metadata,
       robots_confidence AS confidence,
       robots_line AS line,
       robots_fetched_ms,
       robots_ignored AS ignored
FROM pages
WHERE robots_allowed IS NOT NULL
UNION ALL
SELECT crawl_id, fp, url, type, at_ms, content, metadata, confidence, NULL, NULL, NULL
FROM evidence_log;

-- +goose Down
DROP VIEW evidence;
DROP TABLE evidence_log;
DROP TABLE domains;
DROP TABLE requests;
DROP TABLE page_links;
DROP TABLE pages;
DROP TABLE crawls;
