-- +goose Up
-- Ids are ULIDs: their order is that of time.
CREATE TABLE operations (
	id       text COLLATE "C" PRIMARY KEY,
	account  text COLLATE "C" NOT NULL,
	agent    text NOT NULL,
	server   text COLLATE "C" NOT NULL,
	verb     text NOT NULL,
	target   text NOT NULL,
	username text NOT NULL,
	origin   text COLLATE "C" NOT NULL,
	state    text NOT NULL,
	status   bigint NOT NULL,
	reason   text NOT NULL,
	message  text NOT NULL,
	accepted bigint NOT NULL,
	due      bigint NOT NULL,
	sent     bigint NOT NULL,
	ended    bigint NOT NULL
);
CREATE INDEX operations_account ON operations (account, id);
CREATE INDEX operations_origin ON operations (origin, id);
CREATE INDEX operations_accepted ON operations (accepted);
CREATE INDEX operations_pending ON operations (server) WHERE state = 'pending';

-- The request is NULL where a task has none to be known again by. Each task is
-- updated a few times: room on the page keeps those updates in place.
CREATE TABLE tasks (
	id          text COLLATE "C" PRIMARY KEY,
	request     text COLLATE "C" UNIQUE,
	server      text COLLATE "C" NOT NULL,
	application text NOT NULL,
	username    text NOT NULL,
	state       text NOT NULL,
	created     bigint NOT NULL,
	seen        bigint NOT NULL,
	ended       bigint NOT NULL,
	body        bytea NOT NULL
) WITH (fillfactor = 70);
ALTER TABLE tasks ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX tasks_ended ON tasks (ended);
CREATE INDEX tasks_running ON tasks (server) WHERE state = 'running';
