-- +goose Up
-- Compatible from: 15
-- Up to when accounts are complete is stored in one row of the process that reports them, for all that follow it. An account
-- follows a process in one term; servers that do not know the columns write another term without that.
CREATE TABLE process_freshness (
	id   text COLLATE "C" PRIMARY KEY,
	seen bigint NOT NULL
) WITH (fillfactor = 20);
ALTER TABLE freshness ADD COLUMN process text COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN followed bigint NOT NULL DEFAULT 0;
