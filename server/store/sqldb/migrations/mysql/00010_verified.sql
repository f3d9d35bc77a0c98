-- +goose Up
-- When a feed was last found to equal its cluster, in microseconds since 1970, and how many of its
-- objects were found to differ, all together. One statement does all or nothing, and may be done
-- and not noted; MySQL has no ADD COLUMN IF NOT EXISTS.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'feeds' AND column_name = 'verified') = 0,
	'ALTER TABLE feeds ADD COLUMN verified BIGINT NOT NULL DEFAULT 0, ADD COLUMN drift BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
