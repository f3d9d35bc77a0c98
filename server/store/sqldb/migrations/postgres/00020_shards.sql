-- +goose Up
-- Compatible from: 15
-- Accounts may be spread over several databases. Each knows its own id, and that of the first if it is one of the others. The first knows
-- which others there are, and in which each account is; the first itself has the empty name. Column locks is as that of accounts.
CREATE TABLE installation (
	id        integer NOT NULL PRIMARY KEY,
	uid       text COLLATE "C" NOT NULL,
	first_uid text COLLATE "C" NOT NULL,
	shard     text COLLATE "C" NOT NULL
);
CREATE TABLE shards (
	name  text COLLATE "C" NOT NULL PRIMARY KEY,
	uid   text COLLATE "C" NOT NULL,
	locks bigint NOT NULL DEFAULT 0
);
CREATE TABLE account_shards (
	name  text COLLATE "C" NOT NULL PRIMARY KEY,
	shard text COLLATE "C" NOT NULL,
	locks bigint NOT NULL DEFAULT 0
);
