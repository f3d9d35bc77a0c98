-- +goose Up
-- All texts have the collation of bytes, and not that of the database, which may be any: with
-- others the order of what is sorted depends on the language, and names that differ may be equal.
-- No table is rewritten.
ALTER TABLE accounts ALTER COLUMN cluster_uid TYPE text COLLATE "C",
	ALTER COLUMN host TYPE text COLLATE "C",
	ALTER COLUMN fingerprint TYPE text COLLATE "C",
	ALTER COLUMN version TYPE text COLLATE "C",
	ALTER COLUMN shape TYPE text COLLATE "C",
	ALTER COLUMN properties TYPE text COLLATE "C",
	ALTER COLUMN namespaces TYPE text COLLATE "C",
	ALTER COLUMN holder TYPE text COLLATE "C",
	ALTER COLUMN server TYPE text COLLATE "C",
	ALTER COLUMN permitted_by TYPE text COLLATE "C";

ALTER TABLE kinds ALTER COLUMN agent TYPE text COLLATE "C";

ALTER TABLE feeds ALTER COLUMN mark TYPE text COLLATE "C",
	ALTER COLUMN state TYPE text COLLATE "C",
	ALTER COLUMN message TYPE text COLLATE "C",
	ALTER COLUMN version TYPE text COLLATE "C",
	ALTER COLUMN plural TYPE text COLLATE "C",
	ALTER COLUMN singular TYPE text COLLATE "C",
	ALTER COLUMN short_names TYPE text COLLATE "C";

ALTER TABLE operations ALTER COLUMN agent TYPE text COLLATE "C",
	ALTER COLUMN verb TYPE text COLLATE "C",
	ALTER COLUMN target TYPE text COLLATE "C",
	ALTER COLUMN username TYPE text COLLATE "C",
	ALTER COLUMN state TYPE text COLLATE "C",
	ALTER COLUMN reason TYPE text COLLATE "C",
	ALTER COLUMN message TYPE text COLLATE "C";

ALTER TABLE tasks ALTER COLUMN application TYPE text COLLATE "C",
	ALTER COLUMN username TYPE text COLLATE "C",
	ALTER COLUMN state TYPE text COLLATE "C";

ALTER TABLE lease ALTER COLUMN server TYPE text COLLATE "C",
	ALTER COLUMN host TYPE text COLLATE "C",
	ALTER COLUMN token TYPE text COLLATE "C";
