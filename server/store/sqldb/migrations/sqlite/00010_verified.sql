-- +goose Up
-- When a feed was last found to equal its cluster, in microseconds since 1970, and how many of its
-- objects were found to differ, all together.
ALTER TABLE feeds ADD COLUMN verified BIGINT NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN drift BIGINT NOT NULL DEFAULT 0;
