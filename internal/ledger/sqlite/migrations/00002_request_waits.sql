-- +goose Up

-- What a request waited for and what its answer asked for, so that a replay of
-- the log can prove that both were kept.
ALTER TABLE requests ADD COLUMN granted_us INTEGER;     -- when its permit was granted
ALTER TABLE requests ADD COLUMN gap_why TEXT;           -- what gap_owed_us was for
ALTER TABLE requests ADD COLUMN asked_until_us INTEGER; -- the server asked not to be asked before
ALTER TABLE requests ADD COLUMN asked_after INTEGER;    -- permits up to this one were granted before it asked
ALTER TABLE requests ADD COLUMN retry_at_us INTEGER;    -- its URL is tried again, not before
ALTER TABLE requests ADD COLUMN retry_why TEXT;         -- what retry_at_us waits for

-- The settings a crawl went on with when it was resumed with other ones. What
-- it was started with stays in crawls.spec.
CREATE TABLE crawl_settings (
    crawl_id INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    spec     TEXT    NOT NULL,                    -- JSON
    PRIMARY KEY (crawl_id, since_ms)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE crawl_settings;
ALTER TABLE requests DROP COLUMN retry_why;
ALTER TABLE requests DROP COLUMN retry_at_us;
ALTER TABLE requests DROP COLUMN asked_after;
ALTER TABLE requests DROP COLUMN asked_until_us;
ALTER TABLE requests DROP COLUMN gap_why;
ALTER TABLE requests DROP COLUMN granted_us;
