-- +goose Up
-- Compatible from: 15
-- The servers that share the database. A file of SQLite has one user, so nothing is ever written here.
CREATE TABLE servers (
	id             TEXT PRIMARY KEY NOT NULL,
	token          TEXT NOT NULL,
	host           TEXT NOT NULL,
	url            TEXT NOT NULL,
	peer_address   TEXT NOT NULL,
	public_key     BLOB NOT NULL,
	version        TEXT NOT NULL,
	schema_version INTEGER NOT NULL,
	state          TEXT NOT NULL,
	started        INTEGER NOT NULL,
	renewed        INTEGER NOT NULL
);
