-- +goose Up
-- The last complete answers of a Clouddriver behind the server, compressed, in parts that any database accepts.
-- fetched is when the answer was read, in microseconds since 1970; it is in the first part only.
CREATE TABLE upstream_answers (
	name    TEXT NOT NULL,
	part    INT NOT NULL,
	fetched BIGINT NOT NULL,
	body    BLOB NOT NULL,
	PRIMARY KEY (name, part)
);
