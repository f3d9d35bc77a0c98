-- +goose Up
-- What list views show of an object. The cluster is Spinnaker's, for the objects of which
-- clusters consist. Agents report all objects again after the upgrade, which fills the columns.
ALTER TABLE objects ADD COLUMN cluster text COLLATE "C" NOT NULL DEFAULT '',
	ADD COLUMN owner bytea NOT NULL DEFAULT '', ADD COLUMN attributes bytea NOT NULL DEFAULT '\x00';
ALTER TABLE objects ALTER COLUMN attributes SET STORAGE MAIN;
CREATE INDEX objects_owner ON objects (owner) WHERE owner <> '';

-- How many objects Spinnaker's clusters consist of, so that no list of applications counts objects.
CREATE TABLE clusters (
	account_id  integer NOT NULL,
	objects     integer NOT NULL,
	managed     integer NOT NULL,
	application text COLLATE "C" NOT NULL,
	cluster     text COLLATE "C" NOT NULL,
	PRIMARY KEY (account_id, application, cluster)
);
