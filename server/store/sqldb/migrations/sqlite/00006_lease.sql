-- +goose Up
-- Which server uses the database. SQLite's file is locked by the process that uses
-- it, so nothing is ever written here.
CREATE TABLE lease (
	id      INTEGER PRIMARY KEY,
	server  TEXT NOT NULL,
	host    TEXT NOT NULL,
	token   TEXT NOT NULL,
	taken   INTEGER NOT NULL,
	renewed INTEGER NOT NULL
);
INSERT INTO lease (id, server, host, token, taken, renewed) VALUES (1, '', '', '', 0, 0);
