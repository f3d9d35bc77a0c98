-- +goose Up
-- Who requested an operation: username is who it was, and the others are what was claimed and what was proven.
-- kind, namespace and name are of its object. bytes is about what the history keeps of it, on disk.
ALTER TABLE operations ADD COLUMN claimed text COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN proven text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN service text COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN address text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN name text COLLATE "C" NOT NULL DEFAULT '', ADD COLUMN undoes text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN bytes bigint NOT NULL DEFAULT 1500;

-- Pages are in the order of acceptance, because callers choose ids. Each filter has an index in that order.
DROP INDEX operations_account, operations_origin, operations_accepted;
CREATE INDEX operations_accepted ON operations (accepted, id, bytes);
CREATE INDEX operations_account ON operations (account, accepted, id);
CREATE INDEX operations_username ON operations (username, accepted, id);
CREATE INDEX operations_verb ON operations (verb, accepted, id);
CREATE INDEX operations_state ON operations (state, accepted, id);
CREATE INDEX operations_origin ON operations (origin, accepted, id);
CREATE INDEX operations_agent ON operations (agent, accepted, id);
CREATE INDEX operations_name ON operations (name, namespace, accepted, id);
CREATE INDEX operations_namespace ON operations (namespace, accepted, id);
CREATE INDEX operations_ended ON operations (ended, id);

-- The objects of operations that changed several.
CREATE TABLE operation_objects (
	id        text COLLATE "C" NOT NULL,
	kind      text COLLATE "C" NOT NULL,
	namespace text COLLATE "C" NOT NULL,
	name      text COLLATE "C" NOT NULL,
	PRIMARY KEY (id, kind, namespace, name)
);
CREATE INDEX operation_objects_name ON operation_objects (name, namespace, id);
CREATE INDEX operation_objects_namespace ON operation_objects (namespace, id);

-- What operations changed, as JSON.
CREATE TABLE operation_changes (
	id   text COLLATE "C" PRIMARY KEY,
	body text COLLATE "C" NOT NULL
);
