-- +goose Up
-- Compatible from: 15
-- The term in which a cacher has not reported yet that the feeds are live which were when it acquired the account. While it is the
-- account's term, readers see these feeds as pending. So an account that moves and goes on writes no row of a feed.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'accounts' AND column_name = 'resumed_term') = 0,
	'ALTER TABLE accounts ADD COLUMN resumed_term BIGINT NOT NULL DEFAULT -1', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
