-- +goose Up
-- Compatible from: 15
-- Accounts may be spread over several databases. Each knows its own id, and that of the first if it is one of the others. The first knows
-- which others there are, and in which each account is; the first itself has the empty name. Column locks is as that of accounts.
CREATE TABLE installation (
	id        INTEGER NOT NULL PRIMARY KEY,
	uid       TEXT NOT NULL,
	first_uid TEXT NOT NULL,
	shard     TEXT NOT NULL
);
CREATE TABLE shards (
	name  TEXT NOT NULL PRIMARY KEY,
	uid   TEXT NOT NULL,
	locks INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE account_shards (
	name  TEXT NOT NULL PRIMARY KEY,
	shard TEXT NOT NULL,
	locks INTEGER NOT NULL DEFAULT 0
);
