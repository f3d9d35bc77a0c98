-- +goose Up
-- Compatible from: 15
-- Counts the transactions that have locked the row where a lock is seen by one node of the database only: two
-- transactions at two nodes exclude each other by writing the same row.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'accounts' AND column_name = 'locks') = 0,
	'ALTER TABLE accounts ADD COLUMN locks BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
