-- +goose Up
-- Compatible from: 15
-- The servers that share the database; none while one server uses it alone, as table lease says. token is of the process, public_key
-- the SHA-256 of the key with which it proves to other servers who it is. schema_version is the newest that the server knows. state is
-- running or draining. Times are microseconds since 1970 by the database's clock.
-- While servers share the database, schema_compatibility says that servers of version 15 cannot use it, because they do not know this table.
CREATE TABLE servers (
	id             text COLLATE "C" PRIMARY KEY,
	token          text COLLATE "C" NOT NULL,
	host           text COLLATE "C" NOT NULL,
	url            text COLLATE "C" NOT NULL,
	peer_address   text COLLATE "C" NOT NULL,
	public_key     bytea NOT NULL,
	version        text COLLATE "C" NOT NULL,
	schema_version bigint NOT NULL,
	state          text COLLATE "C" NOT NULL,
	started        bigint NOT NULL,
	renewed        bigint NOT NULL
) WITH (fillfactor = 20);
