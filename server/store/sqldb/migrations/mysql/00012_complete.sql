-- +goose Up
-- Since when all feeds of an account have ended their first snapshots or cannot, and since when those that
-- Spinnaker decides by have all been live, in microseconds since 1970; 0 until then. A Clouddriver behind the
-- server answers for an account until it is complete.
-- One statement does all or nothing, and may be done and not noted; MySQL has no ADD COLUMN IF NOT EXISTS.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'accounts' AND column_name = 'settled') = 0,
	'ALTER TABLE accounts ADD COLUMN settled BIGINT NOT NULL DEFAULT 0, ADD COLUMN complete BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
UPDATE accounts SET settled = registered, complete = registered
	WHERE EXISTS (SELECT 1 FROM feeds WHERE feeds.account_id = accounts.id)
	AND NOT EXISTS (SELECT 1 FROM feeds WHERE feeds.account_id = accounts.id AND feeds.synced = 0 AND feeds.state <> 'denied');
