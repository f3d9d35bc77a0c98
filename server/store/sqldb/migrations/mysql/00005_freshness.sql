-- +goose Up
-- Up to when an account, whose name the id is, was complete, as long as its term is
-- this one. All accounts of a server are written together, every few seconds, and
-- nothing else is locked by that.
CREATE TABLE IF NOT EXISTS freshness (
	id   VARCHAR(255) NOT NULL PRIMARY KEY,
	term BIGINT NOT NULL,
	seen BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
