-- +goose Up
-- SQLite compares texts byte by byte already. The versions of all databases are the same.
SELECT 1;
