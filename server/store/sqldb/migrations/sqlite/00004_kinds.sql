-- +goose Up
-- The agent that declared a kind first, and since when no feed has been of it; 0
-- while one is, or it is not known yet that none is.
ALTER TABLE kinds ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE kinds ADD COLUMN unused INTEGER NOT NULL DEFAULT 0;
