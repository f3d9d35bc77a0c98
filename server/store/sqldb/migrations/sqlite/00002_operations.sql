-- +goose Up
-- Ids are ULIDs: their order is that of time.
CREATE TABLE operations (
	id       TEXT PRIMARY KEY,
	account  TEXT NOT NULL,
	agent    TEXT NOT NULL,
	server   TEXT NOT NULL,
	verb     TEXT NOT NULL,
	target   TEXT NOT NULL,
	username TEXT NOT NULL,
	origin   TEXT NOT NULL,
	state    TEXT NOT NULL,
	status   INTEGER NOT NULL,
	reason   TEXT NOT NULL,
	message  TEXT NOT NULL,
	accepted INTEGER NOT NULL,
	due      INTEGER NOT NULL,
	sent     INTEGER NOT NULL,
	ended    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX operations_account ON operations (account, id);
CREATE INDEX operations_origin ON operations (origin, id);
CREATE INDEX operations_accepted ON operations (accepted);
CREATE INDEX operations_pending ON operations (server) WHERE state = 'pending';

-- The request is NULL where a task has none to be known again by.
CREATE TABLE tasks (
	id          TEXT NOT NULL PRIMARY KEY,
	request     TEXT UNIQUE,
	server      TEXT NOT NULL,
	application TEXT NOT NULL,
	username    TEXT NOT NULL,
	state       TEXT NOT NULL,
	created     INTEGER NOT NULL,
	seen        INTEGER NOT NULL,
	ended       INTEGER NOT NULL,
	body        BLOB NOT NULL
);
CREATE INDEX tasks_ended ON tasks (ended);
CREATE INDEX tasks_running ON tasks (server) WHERE state = 'running';
