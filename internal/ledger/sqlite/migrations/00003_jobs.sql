-- +goose Up

-- Who orders crawls, what they ordered and what it cost. Every row that
-- belongs to somebody says to whom. NULL is "none", "unknown" or "not yet".

CREATE TABLE tenants (
    id             TEXT    PRIMARY KEY,
    name           TEXT,
    plan           TEXT,
    weight         INTEGER NOT NULL,              -- share of the slots
    disabled       INTEGER NOT NULL DEFAULT 0,
    webhook_secret TEXT,
    created_ms     INTEGER
) WITHOUT ROWID;

CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,                -- the public part of the key
    tenant_id    TEXT,                            -- NULL: the operator's own
    name         TEXT,
    scopes       TEXT NOT NULL,                   -- JSON array
    hash         BLOB NOT NULL,                   -- SHA-256 of the secret
    created_ms   INTEGER,
    last_used_ms INTEGER,
    revoked_ms   INTEGER
) WITHOUT ROWID;
CREATE INDEX api_keys_by_tenant ON api_keys (tenant_id, created_ms);

-- How far a job has come is in the row of its crawl.
CREATE TABLE jobs (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of submission
    id          TEXT    NOT NULL,
    tenant_id   TEXT    NOT NULL,
    idempotency TEXT,                              -- the caller's own name for the order
    fingerprint TEXT,                              -- of the request
    month       TEXT    NOT NULL,                  -- its pages are reserved in: 2026-11
    created_ms  INTEGER,
    type        TEXT    NOT NULL,                  -- crawl, warm
    status      TEXT    NOT NULL,
    error       TEXT,
    success     INTEGER,                           -- NULL: it has not ended
    priority    INTEGER NOT NULL DEFAULT 0,
    seeds       TEXT    NOT NULL,                  -- JSON array
    request     TEXT,                              -- JSON, as it was asked for
    limits      TEXT,                              -- JSON of the effective limits
    webhook     TEXT,
    schedule_id TEXT,
    crawl_id    INTEGER,
    reserved    INTEGER NOT NULL DEFAULT 0,        -- pages set aside
    spent       INTEGER NOT NULL DEFAULT 0,        -- pages paid for
    granted_ms  INTEGER,                           -- when it was last given a slot
    ran_us      INTEGER NOT NULL DEFAULT 0,        -- time spent with a slot
    ended_ms    INTEGER,
    updated_ms  INTEGER
);
-- Every index ends in the row's number, seq: one tenant's jobs, those in one
-- status, and the queue are each read in order, and only as far as is asked.
CREATE UNIQUE INDEX jobs_by_id ON jobs (id);
CREATE UNIQUE INDEX jobs_by_idempotency ON jobs (tenant_id, idempotency) WHERE idempotency IS NOT NULL;
CREATE INDEX jobs_by_tenant ON jobs (tenant_id);
CREATE INDEX jobs_by_tenant_status ON jobs (tenant_id, status);
CREATE INDEX jobs_by_status ON jobs (status);
CREATE INDEX jobs_by_schedule ON jobs (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_by_grant ON jobs (granted_ms, tenant_id) WHERE granted_ms IS NOT NULL;

CREATE TABLE job_events (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id TEXT NOT NULL,
    job_id    TEXT NOT NULL,
    at_ms     INTEGER,
    type      TEXT NOT NULL,                       -- status, warning, stalled, throttled, ...
    data      TEXT                                 -- JSON
);
CREATE INDEX job_events_by_job ON job_events (job_id);

-- used counts the pages of jobs that ended; reserved those set aside for jobs
-- that have not, which is the sum of their jobs.reserved.
CREATE TABLE usage (
    tenant_id TEXT    NOT NULL,
    month     TEXT    NOT NULL,                    -- 2026-11, of UTC
    used      INTEGER NOT NULL DEFAULT 0,
    reserved  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, month)
) WITHOUT ROWID;

CREATE TABLE schedules (
    id          TEXT    PRIMARY KEY,
    tenant_id   TEXT    NOT NULL,
    name        TEXT,
    rule        TEXT    NOT NULL,                  -- 6h, 12h, 24h, 48h, or cron in UTC
    request     TEXT,                              -- JSON of the order
    enabled     INTEGER NOT NULL,
    created_ms  INTEGER,
    next_ms     INTEGER,                           -- when it is due; NULL while disabled
    last_ms     INTEGER,
    last_job_id TEXT,
    skipped     INTEGER NOT NULL DEFAULT 0,
    note        TEXT                               -- why it was last skipped or refused
) WITHOUT ROWID;
CREATE INDEX schedules_by_tenant ON schedules (tenant_id, created_ms);
CREATE INDEX schedules_due ON schedules (next_ms) WHERE next_ms IS NOT NULL;

CREATE TABLE webhook_deliveries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id  TEXT    NOT NULL,
    job_id     TEXT    NOT NULL,
    event      TEXT    NOT NULL,                   -- job.completed, ...
    url        TEXT    NOT NULL,
    body       TEXT,                               -- JSON
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_ms    INTEGER,                            -- not before; NULL once it is over
    created_ms INTEGER,
    done_ms    INTEGER,                            -- delivered, or given up
    status     INTEGER,                            -- HTTP status of the last attempt
    error      TEXT
);
CREATE INDEX webhook_deliveries_by_job ON webhook_deliveries (job_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_ms) WHERE next_ms IS NOT NULL;

CREATE TABLE operator_log (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms  INTEGER,
    key_id TEXT,
    action TEXT NOT NULL,                          -- tenant.create, key.revoke, ...
    target TEXT,
    detail TEXT,                                   -- JSON
    remote TEXT
);

-- +goose Down
DROP TABLE operator_log;
DROP TABLE webhook_deliveries;
DROP TABLE schedules;
DROP TABLE usage;
DROP TABLE job_events;
DROP TABLE jobs;
DROP TABLE api_keys;
DROP TABLE tenants;
