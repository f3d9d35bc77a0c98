-- +goose Up
CREATE TABLE counters (
	name  TEXT PRIMARY KEY,
	value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('term', 0);

-- Times are microseconds since 1970; 0 stands for never. The name is NULL while
-- an account that was removed still has data.
CREATE TABLE accounts (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	name        TEXT UNIQUE,
	term        INTEGER NOT NULL,
	cluster_uid TEXT NOT NULL,
	host        TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	version     TEXT NOT NULL,
	shape       TEXT NOT NULL,
	properties  TEXT NOT NULL,
	namespaces  TEXT,
	holder      TEXT NOT NULL,
	server      TEXT NOT NULL,
	registered  INTEGER NOT NULL,
	last_seen   INTEGER NOT NULL,
	orphaned    INTEGER NOT NULL
);

CREATE TABLE kinds (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	grp  TEXT NOT NULL,
	UNIQUE (name, grp)
);

CREATE TABLE feeds (
	account_id  INTEGER NOT NULL,
	kind_id     INTEGER NOT NULL,
	namespace   TEXT NOT NULL,
	mark        TEXT NOT NULL,
	state       TEXT NOT NULL,
	message     TEXT NOT NULL,
	objects     INTEGER NOT NULL,
	synced      INTEGER NOT NULL,
	seen        INTEGER NOT NULL,
	version     TEXT NOT NULL,
	plural      TEXT NOT NULL,
	singular    TEXT NOT NULL,
	short_names TEXT NOT NULL,
	namespaced  INTEGER NOT NULL,
	PRIMARY KEY (account_id, kind_id, namespace)
) WITHOUT ROWID;

CREATE TABLE objects (
	account_id  INTEGER NOT NULL,
	kind_id     INTEGER NOT NULL,
	namespace   TEXT NOT NULL,
	name        TEXT NOT NULL,
	labelset    INTEGER NOT NULL,
	stored      INTEGER NOT NULL,
	uid         BLOB NOT NULL,
	version     TEXT NOT NULL,
	application TEXT NOT NULL,
	head        BLOB NOT NULL,
	body        BLOB NOT NULL,
	PRIMARY KEY (account_id, kind_id, namespace, name)
);
CREATE INDEX objects_application ON objects (application, kind_id);
CREATE INDEX objects_labelset ON objects (labelset);

CREATE TABLE labelsets (
	id         INTEGER PRIMARY KEY,
	account_id INTEGER NOT NULL,
	hash       INTEGER NOT NULL,
	labels     TEXT NOT NULL,
	UNIQUE (account_id, hash)
);

CREATE TABLE labels (
	labelset INTEGER NOT NULL,
	name     TEXT NOT NULL,
	value    TEXT NOT NULL,
	PRIMARY KEY (labelset, name)
) WITHOUT ROWID;
CREATE INDEX labels_name ON labels (name, value);

CREATE TABLE dictionaries (
	id      INTEGER PRIMARY KEY,
	kind_id INTEGER NOT NULL,
	part    INTEGER NOT NULL,
	bytes   BLOB NOT NULL
);
CREATE INDEX dictionaries_kind ON dictionaries (kind_id, part);
