-- +goose Up
-- MySQL commits each statement by itself: IF NOT EXISTS and INSERT IGNORE let a
-- migration that was cut off run again.
CREATE TABLE IF NOT EXISTS counters (
	name  VARCHAR(63) NOT NULL PRIMARY KEY,
	value BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO counters (name, value) VALUES ('term', 0);

-- Times are microseconds since 1970; 0 stands for never. The name is NULL while
-- an account that was removed still has data.
CREATE TABLE IF NOT EXISTS accounts (
	id          INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	name        VARCHAR(255) UNIQUE,
	term        BIGINT NOT NULL,
	cluster_uid TEXT NOT NULL,
	host        TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	version     TEXT NOT NULL,
	shape       TEXT NOT NULL,
	properties  LONGTEXT NOT NULL,
	namespaces  LONGTEXT,
	holder      TEXT NOT NULL,
	server      TEXT NOT NULL,
	registered  BIGINT NOT NULL,
	last_seen   BIGINT NOT NULL,
	orphaned    BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS kinds (
	id   SMALLINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	name VARCHAR(255) NOT NULL,
	grp  VARCHAR(255) NOT NULL,
	UNIQUE (name, grp)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS feeds (
	account_id  INT NOT NULL,
	kind_id     SMALLINT NOT NULL,
	namespace   VARCHAR(255) NOT NULL,
	mark        TEXT NOT NULL,
	state       VARCHAR(63) NOT NULL,
	message     LONGTEXT NOT NULL,
	objects     BIGINT NOT NULL,
	synced      BIGINT NOT NULL,
	seen        BIGINT NOT NULL,
	version     TEXT NOT NULL,
	plural      TEXT NOT NULL,
	singular    TEXT NOT NULL,
	short_names TEXT NOT NULL,
	namespaced  SMALLINT NOT NULL,
	PRIMARY KEY (account_id, kind_id, namespace)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Every index of InnoDB repeats the primary key, and rows lie in its order. A
-- number keeps indexes small, and pages full, since new rows come at the end.
CREATE TABLE IF NOT EXISTS objects (
	id          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	account_id  INT NOT NULL,
	kind_id     SMALLINT NOT NULL,
	namespace   VARCHAR(63) NOT NULL,
	name        VARCHAR(512) NOT NULL,
	labelset    BIGINT NOT NULL,
	`stored`    BIGINT NOT NULL,
	uid         VARBINARY(255) NOT NULL,
	version     VARCHAR(255) NOT NULL,
	application VARCHAR(255) NOT NULL,
	head        LONGBLOB NOT NULL,
	body        LONGBLOB NOT NULL,
	UNIQUE objects_key (account_id, kind_id, namespace, name),
	INDEX objects_application (application, kind_id),
	INDEX objects_labelset (labelset)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS labelsets (
	id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	hash       BIGINT NOT NULL,
	account_id INT NOT NULL,
	labels     LONGTEXT NOT NULL,
	UNIQUE (account_id, hash)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS labels (
	labelset BIGINT NOT NULL,
	name     VARCHAR(317) NOT NULL,
	value    VARCHAR(63) NOT NULL,
	PRIMARY KEY (labelset, name),
	INDEX labels_name (name, value)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS dictionaries (
	id      INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	kind_id SMALLINT NOT NULL,
	part    SMALLINT NOT NULL,
	bytes   LONGBLOB NOT NULL,
	INDEX dictionaries_kind (kind_id, part)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
