-- +goose Up
-- What list views show of an object. The cluster is Spinnaker's, for the objects of which
-- clusters consist. Agents report all objects again after the upgrade, which fills the columns.
-- One statement does all or nothing, and may be done and not noted; MySQL has no ADD COLUMN
-- IF NOT EXISTS.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'objects' AND column_name = 'attributes') = 0,
	'ALTER TABLE objects ADD COLUMN cluster VARCHAR(320) NOT NULL DEFAULT '''', ADD COLUMN owner VARBINARY(255) NOT NULL DEFAULT '''', ADD COLUMN attributes LONGBLOB NOT NULL DEFAULT (x''00''), ADD INDEX objects_owner (owner)', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;

-- How many objects Spinnaker's clusters consist of, so that no list of applications counts objects.
CREATE TABLE IF NOT EXISTS clusters (
	account_id  INT NOT NULL,
	application VARCHAR(255) NOT NULL,
	cluster     VARCHAR(320) NOT NULL,
	objects     INT NOT NULL,
	managed     INT NOT NULL,
	PRIMARY KEY (account_id, application, cluster)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
