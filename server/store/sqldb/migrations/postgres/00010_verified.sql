-- +goose Up
-- When a feed was last found to equal its cluster, in microseconds since 1970, and how many of its
-- objects were found to differ, all together.
ALTER TABLE feeds ADD COLUMN verified bigint NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN drift bigint NOT NULL DEFAULT 0;
