-- +goose Up
-- Compatible from: 15
-- The servers that share the database; none while one server uses it alone, as table lease says. token is of the process, public_key
-- the SHA-256 of the key with which it proves to other servers who it is. schema_version is the newest that the server knows. state is
-- running or draining. Times are microseconds since 1970 by the database's clock.
-- While servers share the database, schema_compatibility says that servers of version 15 cannot use it, because they do not know this table.
CREATE TABLE IF NOT EXISTS servers (
	id             VARBINARY(255) NOT NULL PRIMARY KEY,
	token          VARBINARY(255) NOT NULL,
	host           VARBINARY(255) NOT NULL,
	url            VARBINARY(1024) NOT NULL,
	peer_address   VARBINARY(512) NOT NULL,
	public_key     VARBINARY(64) NOT NULL,
	version        VARBINARY(255) NOT NULL,
	schema_version BIGINT NOT NULL,
	state          VARBINARY(32) NOT NULL,
	started        BIGINT NOT NULL,
	renewed        BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
