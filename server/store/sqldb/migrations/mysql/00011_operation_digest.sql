-- +goose Up
-- Tells an operation from others that are sent with its id. Empty if the id was not the caller's, or
-- if the operation was recorded by an older release.
-- A statement that changes the schema commits by itself, so it may be done and not
-- noted. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'operations' AND column_name = 'digest') = 0,
	'ALTER TABLE operations ADD COLUMN digest VARBINARY(255) NOT NULL DEFAULT ''''', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
