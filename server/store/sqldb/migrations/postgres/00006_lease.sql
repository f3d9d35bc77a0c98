-- +goose Up
-- Which server uses the database: one row. Times are microseconds since 1970 by
-- the database's clock. The token is empty while none does.
CREATE TABLE lease (
	id      integer PRIMARY KEY,
	server  text NOT NULL,
	host    text NOT NULL,
	token   text NOT NULL,
	taken   bigint NOT NULL,
	renewed bigint NOT NULL
) WITH (fillfactor = 20);
INSERT INTO lease (id, server, host, token, taken, renewed) VALUES (1, '', '', '', 0, 0);
