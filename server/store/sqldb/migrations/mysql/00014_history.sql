-- +goose Up
-- Who requested an operation: username is who it was, and the others are what was claimed and what was proven.
-- kind, namespace and name are of its object. bytes is about what the history keeps of it, on disk.
-- Pages are in the order of acceptance, because callers choose ids. Each filter has an index in that order; InnoDB
-- adds the id to each.
-- One statement does all or nothing, and may be done and not noted; MySQL has no ADD COLUMN IF NOT EXISTS.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'operations' AND column_name = 'claimed') = 0,
	'ALTER TABLE operations ADD COLUMN claimed VARBINARY(1024) NOT NULL DEFAULT '''', ADD COLUMN proven VARBINARY(1024) NOT NULL DEFAULT '''',
		ADD COLUMN service VARBINARY(255) NOT NULL DEFAULT '''', ADD COLUMN address VARBINARY(255) NOT NULL DEFAULT '''',
		ADD COLUMN kind VARBINARY(320) NOT NULL DEFAULT '''', ADD COLUMN namespace VARBINARY(255) NOT NULL DEFAULT '''',
		ADD COLUMN name VARBINARY(512) NOT NULL DEFAULT '''', ADD COLUMN undoes VARBINARY(26) NOT NULL DEFAULT '''',
		ADD COLUMN bytes BIGINT NOT NULL DEFAULT 1500,
		DROP INDEX operations_account, DROP INDEX operations_origin, DROP INDEX operations_accepted,
		ADD INDEX operations_accepted (accepted, id, bytes), ADD INDEX operations_account (account, accepted),
		ADD INDEX operations_username (username, accepted), ADD INDEX operations_verb (verb, accepted),
		ADD INDEX operations_state (state, accepted), ADD INDEX operations_origin (origin, accepted),
		ADD INDEX operations_agent (agent, accepted), ADD INDEX operations_name (name, namespace, accepted),
		ADD INDEX operations_namespace (namespace, accepted), ADD INDEX operations_ended (ended)', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;

-- The objects of operations that changed several.
CREATE TABLE IF NOT EXISTS operation_objects (
	id        VARBINARY(26) NOT NULL,
	kind      VARBINARY(320) NOT NULL,
	namespace VARBINARY(255) NOT NULL,
	name      VARBINARY(512) NOT NULL,
	PRIMARY KEY (id, kind, namespace, name),
	INDEX operation_objects_name (name, namespace),
	INDEX operation_objects_namespace (namespace)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- What operations changed, as JSON.
CREATE TABLE IF NOT EXISTS operation_changes (
	id   VARBINARY(26) NOT NULL PRIMARY KEY,
	body LONGBLOB NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
