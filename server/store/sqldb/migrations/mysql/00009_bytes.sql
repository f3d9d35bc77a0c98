-- +goose Up
-- Texts become bytes: no column has a collation. Those of characters, utf8mb4_bin too, ignore
-- spaces at the end of texts that they compare, so that the objects "web" and "web " were one
-- row. Those that do not have other names in MySQL and in MariaDB. The lengths stay, which were
-- in characters: the store limits texts to as many bytes. Each table is copied once. Each
-- statement commits by itself, and may be done again.
ALTER TABLE counters MODIFY name VARBINARY(63) NOT NULL;

ALTER TABLE accounts MODIFY name VARBINARY(255),
	MODIFY cluster_uid BLOB NOT NULL,
	MODIFY host BLOB NOT NULL,
	MODIFY fingerprint BLOB NOT NULL,
	MODIFY version BLOB NOT NULL,
	MODIFY shape BLOB NOT NULL,
	MODIFY properties LONGBLOB NOT NULL,
	MODIFY namespaces LONGBLOB,
	MODIFY holder BLOB NOT NULL,
	MODIFY server BLOB NOT NULL,
	MODIFY retired VARBINARY(255),
	MODIFY permitted_by VARBINARY(255) NOT NULL DEFAULT '';

ALTER TABLE kinds MODIFY name VARBINARY(255) NOT NULL,
	MODIFY grp VARBINARY(255) NOT NULL,
	MODIFY agent VARBINARY(255) NOT NULL DEFAULT '';

ALTER TABLE feeds MODIFY namespace VARBINARY(255) NOT NULL,
	MODIFY mark BLOB NOT NULL,
	MODIFY state VARBINARY(63) NOT NULL,
	MODIFY message LONGBLOB NOT NULL,
	MODIFY version BLOB NOT NULL,
	MODIFY plural BLOB NOT NULL,
	MODIFY singular BLOB NOT NULL,
	MODIFY short_names BLOB NOT NULL;

ALTER TABLE objects MODIFY namespace VARBINARY(63) NOT NULL,
	MODIFY name VARBINARY(512) NOT NULL,
	MODIFY version VARBINARY(255) NOT NULL,
	MODIFY application VARBINARY(255) NOT NULL,
	MODIFY cluster VARBINARY(320) NOT NULL DEFAULT '';

ALTER TABLE labelsets MODIFY labels LONGBLOB NOT NULL;

ALTER TABLE labels MODIFY name VARBINARY(317) NOT NULL,
	MODIFY value VARBINARY(63) NOT NULL;

ALTER TABLE operations MODIFY id VARBINARY(26) NOT NULL,
	MODIFY account VARBINARY(255) NOT NULL,
	MODIFY agent VARBINARY(255) NOT NULL,
	MODIFY server VARBINARY(255) NOT NULL,
	MODIFY verb VARBINARY(63) NOT NULL,
	MODIFY target BLOB NOT NULL,
	MODIFY username VARBINARY(255) NOT NULL,
	MODIFY origin VARBINARY(255) NOT NULL,
	MODIFY state VARBINARY(63) NOT NULL,
	MODIFY reason VARBINARY(255) NOT NULL,
	MODIFY message BLOB NOT NULL;

ALTER TABLE tasks MODIFY id VARBINARY(26) NOT NULL,
	MODIFY request VARBINARY(255),
	MODIFY server VARBINARY(255) NOT NULL,
	MODIFY application VARBINARY(255) NOT NULL,
	MODIFY username VARBINARY(255) NOT NULL,
	MODIFY state VARBINARY(63) NOT NULL;

ALTER TABLE freshness MODIFY id VARBINARY(255) NOT NULL;

ALTER TABLE lease MODIFY server VARBINARY(255) NOT NULL,
	MODIFY host VARBINARY(255) NOT NULL,
	MODIFY token VARBINARY(255) NOT NULL;

ALTER TABLE clusters MODIFY application VARBINARY(255) NOT NULL,
	MODIFY cluster VARBINARY(320) NOT NULL;

-- An object may have been stored under the name of another one. Without marks, agents compare
-- all objects with what is stored, and send those that differ.
UPDATE feeds SET mark = '';
