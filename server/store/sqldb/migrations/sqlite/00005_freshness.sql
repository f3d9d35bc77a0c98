-- +goose Up
-- Up to when an account, whose name the id is, was complete, as long as its term is
-- this one. All accounts of a server are written together, every few seconds.
CREATE TABLE freshness (
	id   TEXT PRIMARY KEY,
	term INTEGER NOT NULL,
	seen INTEGER NOT NULL
) WITHOUT ROWID;
