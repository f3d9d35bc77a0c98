-- +goose Up
-- Compatible from: 15
-- Up to when accounts are complete is stored in one row of the process that reports them, for all that follow it. An account
-- follows a process in one term; servers that do not know the columns write another term without that.
CREATE TABLE IF NOT EXISTS process_freshness (
	id   VARBINARY(255) NOT NULL PRIMARY KEY,
	seen BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'freshness' AND column_name = 'followed') = 0,
	'ALTER TABLE freshness ADD COLUMN process VARBINARY(255) NOT NULL DEFAULT \'\', ADD COLUMN followed BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
