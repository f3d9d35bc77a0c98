-- +goose Up
-- Which servers can use a version of the schema after this one: those that know the version compatible_from or a later one. It is
-- written by the migration to that version, so that servers can tell that do not know it.
CREATE TABLE IF NOT EXISTS schema_compatibility (
	version         BIGINT NOT NULL PRIMARY KEY,
	compatible_from BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
