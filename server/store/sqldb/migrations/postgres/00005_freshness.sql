-- +goose Up
-- Up to when an account, whose name the id is, was complete, as long as its term is
-- this one. All accounts of a server are written together, every few seconds, and
-- nothing else is locked by that.
CREATE TABLE freshness (
	id   text COLLATE "C" PRIMARY KEY,
	term bigint NOT NULL,
	seen bigint NOT NULL
) WITH (fillfactor = 50);
