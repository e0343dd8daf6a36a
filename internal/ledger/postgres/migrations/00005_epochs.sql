-- +goose Up

-- How often a crawl was opened again: whoever opened it before does not end it
-- any more.
ALTER TABLE crawls ADD COLUMN epoch bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE crawls DROP COLUMN epoch;
