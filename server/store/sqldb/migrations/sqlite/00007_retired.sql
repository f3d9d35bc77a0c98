-- +goose Up
-- The name that an account had whose data are kept. Its name is NULL then.
ALTER TABLE accounts ADD COLUMN retired TEXT;
-- The agent whose word the permissions are.
ALTER TABLE accounts ADD COLUMN permitted_by TEXT NOT NULL DEFAULT '';
CREATE INDEX accounts_retired ON accounts (retired);
