-- +goose Up
-- The name that an account had whose data are kept: its name is NULL then. The
-- agent whose word the permissions are. One statement does all or nothing, and may
-- be done and not noted; MySQL has no ADD COLUMN IF NOT EXISTS.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'accounts' AND column_name = 'retired') = 0,
	'ALTER TABLE accounts ADD COLUMN retired VARCHAR(255), ADD COLUMN permitted_by VARCHAR(255) NOT NULL DEFAULT '''', ADD INDEX accounts_retired (retired)', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
