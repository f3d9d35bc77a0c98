-- +goose Up
-- What list views show of an object. The cluster is Spinnaker's, for the objects of which
-- clusters consist. Agents report all objects again after the upgrade, which fills the columns.
ALTER TABLE objects ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
ALTER TABLE objects ADD COLUMN owner BLOB NOT NULL DEFAULT x'';
ALTER TABLE objects ADD COLUMN attributes BLOB NOT NULL DEFAULT x'00';
CREATE INDEX objects_owner ON objects (owner) WHERE owner <> x'';

-- How many objects Spinnaker's clusters consist of, so that no list of applications counts objects.
CREATE TABLE clusters (
	account_id  INTEGER NOT NULL,
	application TEXT NOT NULL,
	cluster     TEXT NOT NULL,
	objects     INTEGER NOT NULL,
	managed     INTEGER NOT NULL,
	PRIMARY KEY (account_id, application, cluster)
) WITHOUT ROWID;
