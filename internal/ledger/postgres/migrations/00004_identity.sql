-- +goose Up

-- Which ledger this is, made once: crawls have numbers, and a frontier that
-- knows them by their numbers must not meet another ledger. A copy of the
-- database is the same ledger.
CREATE TABLE ledger_identity (
    one bool PRIMARY KEY DEFAULT true CHECK (one),
    id  text NOT NULL
);
INSERT INTO ledger_identity (id) VALUES (gen_random_uuid()::text);

-- +goose Down
DROP TABLE ledger_identity;
