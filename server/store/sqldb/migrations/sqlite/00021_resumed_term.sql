-- +goose Up
-- Compatible from: 15
-- The term in which a cacher has not reported yet that the feeds are live which were when it acquired the account. While it is the
-- account's term, readers see these feeds as pending. So an account that moves and goes on writes no row of a feed.
ALTER TABLE accounts ADD COLUMN resumed_term INTEGER NOT NULL DEFAULT -1;
