-- +goose Up
-- A statement that changes the schema commits by itself, so it may be done and not
-- noted. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'operations' AND column_name = 'dry_run') = 0,
	'ALTER TABLE operations ADD COLUMN dry_run TINYINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
