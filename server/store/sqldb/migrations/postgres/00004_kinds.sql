-- +goose Up
-- A smallint was used up by 32,767 kinds, of which one agent could declare as many.
-- Each table is rewritten once.
ALTER TABLE kinds ALTER COLUMN id TYPE integer;
ALTER SEQUENCE kinds_id_seq AS integer;
ALTER TABLE feeds ALTER COLUMN kind_id TYPE integer;
ALTER TABLE objects ALTER COLUMN kind_id TYPE integer;
ALTER TABLE dictionaries ALTER COLUMN kind_id TYPE integer;

-- The agent that declared a kind first, and since when no feed has been of it; 0
-- while one is, or it is not known yet that none is.
ALTER TABLE kinds ADD COLUMN agent text NOT NULL DEFAULT '', ADD COLUMN unused bigint NOT NULL DEFAULT 0;
