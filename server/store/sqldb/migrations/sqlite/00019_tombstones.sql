-- +goose Up
-- Compatible from: 15
-- The objects that operations deleted a moment ago. The next server that writes the account leaves out what its feeds still report
-- of them.
CREATE TABLE tombstones (
	account_id INTEGER NOT NULL,
	uid        BLOB NOT NULL,
	kind_id    INTEGER NOT NULL,
	namespace  TEXT NOT NULL,
	name       TEXT NOT NULL,
	deleted    INTEGER NOT NULL,
	PRIMARY KEY (account_id, uid)
) WITHOUT ROWID;
-- The mark that a feed had before a snapshot, until the snapshot ends: it tells whether the cluster has gone back, and whether the feed has
-- reported an object before.
ALTER TABLE feeds ADD COLUMN previous_mark TEXT NOT NULL DEFAULT '';
