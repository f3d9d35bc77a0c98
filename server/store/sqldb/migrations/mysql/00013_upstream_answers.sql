-- +goose Up
-- The last complete answers of a Clouddriver behind the server, compressed, in parts that any database accepts.
-- fetched is when the answer was read, in microseconds since 1970; it is in the first part only.
CREATE TABLE IF NOT EXISTS upstream_answers (
	name    VARBINARY(255) NOT NULL,
	part    INT NOT NULL,
	fetched BIGINT NOT NULL,
	body    LONGBLOB NOT NULL,
	PRIMARY KEY (name, part)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
