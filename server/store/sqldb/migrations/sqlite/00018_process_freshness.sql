-- +goose Up
-- Compatible from: 15
-- Up to when accounts are complete is stored in one row of the process that reports them, for all that follow it. An account
-- follows a process in one term; servers that do not know the columns write another term without that.
CREATE TABLE process_freshness (
	id   TEXT PRIMARY KEY NOT NULL,
	seen INTEGER NOT NULL
);
ALTER TABLE freshness ADD COLUMN process TEXT NOT NULL DEFAULT '';
ALTER TABLE freshness ADD COLUMN followed INTEGER NOT NULL DEFAULT 0;
