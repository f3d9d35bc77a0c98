-- +goose Up
ALTER TABLE operations ADD COLUMN dry_run smallint NOT NULL DEFAULT 0;
