-- +goose Up
-- Compatible from: 15
-- The objects that operations deleted a moment ago. The next server that writes the account leaves out what its feeds still report
-- of them.
CREATE TABLE IF NOT EXISTS tombstones (
	account_id INT NOT NULL,
	uid        VARBINARY(255) NOT NULL,
	kind_id    SMALLINT NOT NULL,
	namespace  VARBINARY(63) NOT NULL,
	name       VARBINARY(512) NOT NULL,
	deleted    BIGINT NOT NULL,
	PRIMARY KEY (account_id, uid)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
-- The mark that a feed had before a snapshot, until the snapshot ends: it tells whether the cluster has gone back, and whether the feed has
-- reported an object before.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'feeds' AND column_name = 'previous_mark') = 0,
	'ALTER TABLE feeds ADD COLUMN previous_mark VARBINARY(255) NOT NULL DEFAULT \'\'', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
