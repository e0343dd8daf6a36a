-- +goose Up

-- What each worker of a fleet counted for a crawl that is not over yet. The
-- end of a crawl counts its rows, writes the sums into crawls and removes the
-- parts.
CREATE TABLE crawl_parts (
    crawl_id   bigint NOT NULL,
    worker     text   NOT NULL,
    updated_ms bigint,
    processed  bigint NOT NULL,
    successful bigint NOT NULL,
    failed     bigint NOT NULL,
    throttled  bigint NOT NULL,
    blocked    bigint NOT NULL,
    skipped    bigint NOT NULL,
    timeouts   bigint NOT NULL,
    requests   bigint NOT NULL,
    http_429   bigint NOT NULL,
    retries    bigint NOT NULL,
    bytes      bigint NOT NULL,
    PRIMARY KEY (crawl_id, worker)
);

-- +goose Down
DROP TABLE crawl_parts;
