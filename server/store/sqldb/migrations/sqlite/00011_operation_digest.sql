-- +goose Up
-- Tells an operation from others that are sent with its id. Empty if the id was not the caller's, or
-- if the operation was recorded by an older release.
ALTER TABLE operations ADD COLUMN digest TEXT NOT NULL DEFAULT '';
