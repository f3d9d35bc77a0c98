-- +goose Up
-- Which server uses the database: one row. Times are microseconds since 1970 by
-- the database's clock. The token is empty while none does.
CREATE TABLE IF NOT EXISTS lease (
	id      INT NOT NULL PRIMARY KEY,
	server  VARCHAR(255) NOT NULL,
	host    VARCHAR(255) NOT NULL,
	token   VARCHAR(255) NOT NULL,
	taken   BIGINT NOT NULL,
	renewed BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO lease (id, server, host, token, taken, renewed) VALUES (1, '', '', '', 0, 0);
