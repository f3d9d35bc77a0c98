-- +goose Up
-- Since when all feeds of an account have ended their first snapshots or cannot, and since when those that
-- Spinnaker decides by have all been live, in microseconds since 1970; 0 until then. A Clouddriver behind the
-- server answers for an account until it is complete.
ALTER TABLE accounts ADD COLUMN settled bigint NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN complete bigint NOT NULL DEFAULT 0;
UPDATE accounts SET settled = registered, complete = registered
	WHERE EXISTS (SELECT 1 FROM feeds WHERE feeds.account_id = accounts.id)
	AND NOT EXISTS (SELECT 1 FROM feeds WHERE feeds.account_id = accounts.id AND feeds.synced = 0 AND feeds.state <> 'denied');
