-- +goose Up
-- Compatible from: 15
-- Accounts may be spread over several databases. Each knows its own id, and that of the first if it is one of the others. The first knows
-- which others there are, and in which each account is; the first itself has the empty name. Column locks is as that of accounts.
CREATE TABLE IF NOT EXISTS installation (
	id        INTEGER NOT NULL PRIMARY KEY,
	uid       VARBINARY(255) NOT NULL,
	first_uid VARBINARY(255) NOT NULL,
	shard     VARBINARY(255) NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE TABLE IF NOT EXISTS shards (
	name  VARBINARY(255) NOT NULL PRIMARY KEY,
	uid   VARBINARY(255) NOT NULL,
	locks BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
CREATE TABLE IF NOT EXISTS account_shards (
	name  VARBINARY(255) NOT NULL PRIMARY KEY,
	shard VARBINARY(255) NOT NULL,
	locks BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
