-- +goose Up
-- Compatible from: 15
-- Counts the transactions that have locked the row where a lock is seen by one node of the database only: two
-- transactions at two nodes exclude each other by writing the same row.
ALTER TABLE accounts ADD COLUMN locks BIGINT NOT NULL DEFAULT 0;
