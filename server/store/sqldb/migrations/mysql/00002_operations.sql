-- +goose Up
-- Ids are ULIDs: their order is that of time.
CREATE TABLE IF NOT EXISTS operations (
	id       VARCHAR(26) NOT NULL PRIMARY KEY,
	account  VARCHAR(255) NOT NULL,
	agent    VARCHAR(255) NOT NULL,
	server   VARCHAR(255) NOT NULL,
	verb     VARCHAR(63) NOT NULL,
	target   TEXT NOT NULL,
	username VARCHAR(255) NOT NULL,
	origin   VARCHAR(255) NOT NULL,
	state    VARCHAR(63) NOT NULL,
	status   BIGINT NOT NULL,
	reason   VARCHAR(255) NOT NULL,
	message  TEXT NOT NULL,
	accepted BIGINT NOT NULL,
	due      BIGINT NOT NULL,
	sent     BIGINT NOT NULL,
	ended    BIGINT NOT NULL,
	INDEX operations_account (account, id),
	INDEX operations_origin (origin, id),
	INDEX operations_accepted (accepted),
	INDEX operations_pending (state, server)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The request is NULL where a task has none to be known again by.
CREATE TABLE IF NOT EXISTS tasks (
	id          VARCHAR(26) NOT NULL PRIMARY KEY,
	request     VARCHAR(255),
	server      VARCHAR(255) NOT NULL,
	application VARCHAR(255) NOT NULL,
	username    VARCHAR(255) NOT NULL,
	state       VARCHAR(63) NOT NULL,
	created     BIGINT NOT NULL,
	seen        BIGINT NOT NULL,
	ended       BIGINT NOT NULL,
	body        LONGBLOB NOT NULL,
	UNIQUE tasks_request (request),
	INDEX tasks_ended (ended),
	INDEX tasks_running (state, server)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
