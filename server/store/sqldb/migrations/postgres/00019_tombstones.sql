-- +goose Up
-- Compatible from: 15
-- The objects that operations deleted a moment ago. The next server that writes the account leaves out what its feeds still report
-- of them.
CREATE TABLE tombstones (
	account_id integer NOT NULL,
	uid        bytea NOT NULL,
	kind_id    smallint NOT NULL,
	namespace  text COLLATE "C" NOT NULL,
	name       text COLLATE "C" NOT NULL,
	deleted    bigint NOT NULL,
	PRIMARY KEY (account_id, uid)
);
-- The mark that a feed had before a snapshot, until the snapshot ends: it tells whether the cluster has gone back, and whether the feed has
-- reported an object before.
ALTER TABLE feeds ADD COLUMN previous_mark text COLLATE "C" NOT NULL DEFAULT '';
