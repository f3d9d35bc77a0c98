package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// TestUpgradeFromSchemaWithoutDryRun opens a database of an older version with an operation in it.
// On MySQL it is as a server left it that stopped in the middle of the migration.
func TestUpgradeFromSchemaWithoutDryRun(t *testing.T) {
	onOldSchemas(t, 2, func(t *testing.T, url string, old *sql.DB) {
		mustExec(t, old, `INSERT INTO operations (id, account, agent, server, verb, target, username, origin, state, status, reason, message, accepted, due, sent, ended)
			VALUES ('01J', 'prod', 'a', 's', 'scale', 'web', '', '', 'done', 200, '', '', 1, 1, 1, 1)`)
		if strings.HasPrefix(url, "mysql:") { // does not roll back changes of the schema
			mustExec(t, old, `ALTER TABLE operations ADD COLUMN dry_run TINYINT NOT NULL DEFAULT 0`)
		}
		s := openStore(t, url)
		if o, err := s.Operation(t.Context(), "01J"); err != nil || o.DryRun || o.Verb != "scale" {
			t.Errorf("got operation %+v, %v, want verb scale without a dry run", o, err)
		}
	})
}

// TestUpgradeFromSmallKindIDs opens a database whose kinds have 16-bit ids, and inserts a kind
// with a larger id.
func TestUpgradeFromSmallKindIDs(t *testing.T) {
	onOldSchemas(t, 3, func(t *testing.T, url string, old *sql.DB) {
		mustExec(t, old, `INSERT INTO accounts (id, name, term, cluster_uid, host, fingerprint, version, shape, properties, namespaces, holder, server, registered, last_seen, orphaned)
			VALUES (1, 'prod', 1, 'u', '', '', '', '', '{}', NULL, 'a', 's', 1, 1, 0)`)
		mustExec(t, old, `INSERT INTO kinds (id, name, grp) VALUES (32767, 'Pod', '')`)
		mustExec(t, old, `INSERT INTO feeds (account_id, kind_id, namespace, mark, state, message, objects, synced, seen, version, plural, singular, short_names, namespaced)
			VALUES (1, 32767, '', '5', 'live', '', 1, 1, 1, 'v1', 'pods', 'pod', '[]', 1)`)
		if strings.HasPrefix(url, "postgres:") {
			mustExec(t, old, `ALTER TABLE kinds ALTER COLUMN id RESTART WITH 32767`)
		}
		w := &storetest.Fixture{Store: openStore(t, url), T: t, Term: 1}
		if strings.HasPrefix(url, "postgres:") { // as after 32,767 kinds
			mustExec(t, old, `SELECT nextval('kinds_id_seq')`)
		}
		if _, err := w.Commit(t.Context(), commit.Batch{Account: "prod", Term: 1, Upserts: storetest.PodsAt(0, 3, 7)}); err != nil {
			t.Fatal(err)
		}
		jobs := vedette.Feed{Kind: vedette.Kind{Group: "batch", Name: "Job"}}
		if _, err := w.Declare(t.Context(), "prod", 1, []commit.DeclaredFeed{{Feed: storetest.PodFeed}, {Feed: jobs}}, nil); err != nil {
			t.Fatal(err)
		}
		var id int64
		if err := w.QueryOne(t.Context(), sqldb.ScanInto(&id), sqldb.Named("test", `SELECT id FROM kinds WHERE name = 'Job'`)); err != nil || id <= 32767 {
			t.Errorf("got id %d, %v, want more than 32767", id, err)
		}
		page, err := w.Objects(t.Context(), read.Query{})
		if err != nil || len(page.Items) != 3 {
			t.Errorf("got %d objects, %v, want 3", len(page.Items), err)
		}
	})
}

// TestUpgradeFromSchemaWithoutAttributes opens a database whose objects have no attributes, and
// reports one of them again. On MySQL it is as a server left it that stopped in the middle of the
// migration.
func TestUpgradeFromSchemaWithoutAttributes(t *testing.T) {
	onOldSchemas(t, 7, func(t *testing.T, url string, old *sql.DB) {
		mustExec(t, old, `INSERT INTO accounts (id, name, term, cluster_uid, host, fingerprint, version, shape, properties, namespaces, holder, server, registered, last_seen, orphaned)
			VALUES (1, 'prod', 1, 'u', '', '', '', '', '{}', NULL, 'a', 's', 1, 1, 0)`)
		mustExec(t, old, `INSERT INTO kinds (id, name, grp) VALUES (1, 'ReplicaSet', 'apps')`)
		mustExec(t, old, `INSERT INTO feeds (account_id, kind_id, namespace, mark, state, message, objects, synced, seen, version, plural, singular, short_names, namespaced)
			VALUES (1, 1, '', '5', 'live', '', 2, 1, 1, 'v1', 'replicasets', '', '[]', 1)`)
		for _, name := range []string{"web-1", "web-2"} {
			mustExec(t, old, `INSERT INTO objects (account_id, kind_id, namespace, name, labelset, stored, uid, version, application, head, body)
				VALUES (1, 1, 'shop', '`+name+`', 0, 1, '00`+name+`', '1', 'web', '', '')`)
		}
		if strings.HasPrefix(url, "mysql:") { // does not roll back changes of the schema
			mustExec(t, old, `ALTER TABLE objects ADD COLUMN cluster VARCHAR(320) NOT NULL DEFAULT '', ADD COLUMN owner VARBINARY(255) NOT NULL DEFAULT '', ADD COLUMN attributes LONGBLOB NOT NULL DEFAULT (x'00'), ADD INDEX objects_owner (owner)`)
		}
		w := &storetest.Fixture{Store: openStore(t, url), T: t, Term: 1}
		rows, err := w.ApplicationAttributes(t.Context(), "web", nil)
		if err != nil || len(rows) != 2 || rows[0].UID != "00"+rows[0].Name || rows[0].Kind.Name != "ReplicaSet" || rows[0].APIVersion != "" {
			t.Errorf("got %+v, %v, want two rows with a uid and without attributes", rows, err)
		}
		inventory, err := w.Inventory(t.Context())
		if err != nil || len(inventory.Applications()) != 0 {
			t.Errorf("got inventory %+v, %v, want an empty one", inventory, err)
		}
		again := vedette.Object{Key: rows[0].Key, UID: "uid", ResourceVersion: "2", APIVersion: "apps/v1", Body: []byte("{}")}
		if _, err := w.Commit(t.Context(), commit.Batch{Account: "prod", Term: 1, Upserts: []vedette.Object{again}}); err != nil {
			t.Fatal(err)
		}
		inventory, err = w.Inventory(t.Context())
		if err != nil || inventory.Application("web") == nil || inventory.Application("web").Accounts[0].Clusters[0].Objects != 1 {
			t.Errorf("got inventory %+v, %v, want the object that was reported again", inventory, err)
		}
		if _, err := w.Commit(t.Context(), commit.Batch{Account: "prod", Term: 1, Deletes: []commit.Deletion{{Key: rows[0].Key}, {Key: rows[1].Key}}}); err != nil {
			t.Fatal(err)
		}
		inventory, err = w.Inventory(t.Context())
		if err != nil || len(inventory.Applications()) != 0 {
			t.Errorf("got inventory %+v, %v after all objects are deleted, want an empty one", inventory, err)
		}
	})
}

// TestUpgradeFromSchemaWithCollations opens a database whose texts have collations, with rows in all
// tables whose names end in spaces or are not ASCII, and stores an object beside one that differs by a space.
func TestUpgradeFromSchemaWithCollations(t *testing.T) {
	onOldSchemas(t, 8, func(t *testing.T, url string, old *sql.DB) {
		mustExec(t, old, `INSERT INTO accounts (id, name, term, cluster_uid, host, fingerprint, version, shape, properties, namespaces, holder, server, registered, last_seen, orphaned)
			VALUES (1, 'prod é', 1, 'u', 'h', 'f', 'v', 's', '{"environment":"ü"}', '["ns"]', 'a', 's', 1, 1, 0)`)
		mustExec(t, old, `INSERT INTO kinds (id, name, grp, agent) VALUES (1, 'ClusterRole', 'rbac.authorization.k8s.io', 'a')`)
		mustExec(t, old, `INSERT INTO feeds (account_id, kind_id, namespace, mark, state, message, objects, synced, seen, version, plural, singular, short_names, namespaced)
			VALUES (1, 1, '', '5', 'live', '', 2, 1, 1, 'v1', 'clusterroles', '', '[]', 0)`)
		for _, name := range []string{"pad ", strings.Repeat("é", 256)} {
			mustExec(t, old, `INSERT INTO objects (account_id, kind_id, namespace, name, labelset, stored, uid, version, application, cluster, head, body)
				VALUES (1, 1, '', '`+name+`', 1000, 1, 'u', '1', 'web', 'c ', '', '')`)
		}
		mustExec(t, old, `INSERT INTO labelsets (id, hash, account_id, labels) VALUES (1000, 1, 1, '{"a":"b"}')`)
		mustExec(t, old, `INSERT INTO labels (labelset, name, value) VALUES (1000, 'a', 'b')`)
		mustExec(t, old, `INSERT INTO clusters (account_id, application, cluster, objects, managed) VALUES (1, 'web', 'c ', 2, 0)`)
		mustExec(t, old, `INSERT INTO operations (id, account, agent, server, verb, target, username, origin, state, status, reason, message, accepted, due, sent, ended)
			VALUES ('01J', 'prod é', 'a', 's', 'scale', 'web', '', 'o', 'done', 200, '', '', 1, 1, 1, 1)`)
		mustExec(t, old, `INSERT INTO freshness (id, term, seen) VALUES ('prod é', 1, 1)`)
		w := &storetest.Fixture{Store: openStore(t, url), T: t, Term: 1}
		roles := vedette.Kind{Group: "rbac.authorization.k8s.io", Name: "ClusterRole"}
		if a, err := w.Account(t.Context(), "prod é"); err != nil || a.Properties.Environment != "ü" || !slices.Equal(a.Namespaces, []string{"ns"}) {
			t.Errorf("got account %+v, %v, want it as it was", a, err)
		}
		if o, err := w.Operation(t.Context(), "01J"); err != nil || o.Account != "prod é" || o.Origin != "o" {
			t.Errorf("got operation %+v, %v, want it as it was", o, err)
		}
		for _, name := range []string{"pad", "pad ", strings.Repeat("é", 256)} {
			role := vedette.Object{Key: vedette.Key{Kind: roles, Name: name}, UID: "uid", ResourceVersion: "2", APIVersion: "v1",
				Labels: map[string]string{"a": "b"}, Body: []byte("{}")}
			if _, err := w.Commit(t.Context(), commit.Batch{Account: "prod é", Term: 1, Upserts: []vedette.Object{role}}); err != nil {
				t.Fatal(err)
			}
		}
		if page, err := w.Objects(t.Context(), read.Query{Selector: "a=b"}); err != nil || len(page.Items) != 3 || page.Items[0].Name != "pad" ||
			page.Items[1].Name != "pad " {
			t.Errorf("got %d objects, %v, want 3", len(page.Items), err)
		}
		var mark string
		if err := old.QueryRow(`SELECT mark FROM feeds`).Scan(&mark); err != nil || strings.HasPrefix(url, "mysql:") != (mark == "") {
			t.Errorf("got mark %q, %v, want none if rows may hold the data of another object", mark, err)
		}
	})
}

// TestUpgradeFromSchemaWithoutFirstSyncs opens a database that does not say how far its accounts are synchronized.
func TestUpgradeFromSchemaWithoutFirstSyncs(t *testing.T) {
	onOldSchemas(t, 11, func(t *testing.T, url string, old *sql.DB) {
		mustExec(t, old, `INSERT INTO kinds (id, name, grp, agent) VALUES (1, 'Pod', '', ''), (2, 'Secret', '', '')`)
		for id, states := range [][2]string{{"live", "denied"}, {"failing", "live"}, {"live", "pending"}, {}} {
			mustExec(t, old, fmt.Sprintf(`INSERT INTO accounts (id, name, term, cluster_uid, host, fingerprint, version, shape, properties, namespaces, holder, server, registered, last_seen, orphaned)
				VALUES (%d, 'a%d', 1, 'u', '', '', '', '', '{}', NULL, 'a', 's', 7, 1, 0)`, id+1, id))
			for kind, state := range states {
				synced := 5
				if state == "" {
					continue
				} else if state == "pending" || state == "denied" {
					synced = 0
				}
				mustExec(t, old, fmt.Sprintf(`INSERT INTO feeds (account_id, kind_id, namespace, mark, state, message, objects, synced, seen, version, plural, singular, short_names, namespaced)
					VALUES (%d, %d, '', '5', '%s', '', 2, %d, 1, 'v1', 'x', '', '[]', 1)`, id+1, kind+1, state, synced))
			}
		}
		syncs, err := openStore(t, url).AccountSyncs(t.Context())
		if err != nil || len(syncs) != 4 {
			t.Fatalf("got %+v, %v, want four accounts", syncs, err)
		}
		for i, want := range []bool{true, true, false, false} {
			if got := syncs[i]; (got.Complete.UnixMicro() == 7) != want || got.Settled != got.Complete || got.Settled.IsZero() == want {
				t.Errorf("account %s: got %+v, want it complete since its registration: %t", got.Account, got.FirstSync, want)
			}
		}
	})
}

// TestTextsAreComparedAsBytes checks that no database compares texts in another way than byte by byte.
func TestTextsAreComparedAsBytes(t *testing.T) {
	for url, query := range map[string]string{
		databases.MariaDB(t):                    `SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns WHERE table_schema = DATABASE() AND collation_name IS NOT NULL`,
		databases.PostgreSQL(t):                 `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'text' AND COALESCE(collation_name, '') <> 'C'`,
		"sqlite:" + t.TempDir() + "/vedette.db": `SELECT name FROM sqlite_schema WHERE sql LIKE '%COLLATE%'`,
	} {
		s, err := store.Open(t.Context(), sqldb.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		err = s.QueryEach(t.Context(), func(rows *sql.Rows) error {
			var column string
			err := rows.Scan(&column)
			t.Errorf("%s: %s has a collation: its texts must be compared as bytes", s.DB.Dialect.Name, column)
			return err
		}, sqldb.Named("test", query))
		if err := errors.Join(err, s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// onOldSchemas runs a test on databases whose schema has an older version. The test opens the
// store.
func onOldSchemas(t *testing.T, version int64, test func(t *testing.T, url string, old *sql.DB)) {
	for name, setUp := range map[string]func(t *testing.T) (url, driver, dsn string, d sqldb.Dialect){
		"SQLite": func(t *testing.T) (string, string, string, sqldb.Dialect) {
			file := t.TempDir() + "/vedette.db"
			return "sqlite:" + file, "sqlite", file, sqldb.SQLiteDialect()
		},
		"PostgreSQL": func(t *testing.T) (string, string, string, sqldb.Dialect) {
			url := databases.PostgreSQL(t)
			return url, "pgx", url, sqldb.PostgresDialect()
		},
		"MariaDB": func(t *testing.T) (string, string, string, sqldb.Dialect) {
			url := databases.MariaDB(t)
			dsn, err := databases.MySQLDSN(url)
			if err != nil {
				t.Fatal(err)
			}
			return url, "mysql", dsn, sqldb.MySQLDialect()
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, driver, dsn, d := setUp(t)
			old, err := sql.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer old.Close()
			gooseDialect, migrations := d.Goose()
			provider, err := goose.NewProvider(gooseDialect, old, migrations, goose.WithDisableGlobalRegistry(true), goose.WithTableName("schema_version"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := provider.UpTo(t.Context(), version); err != nil {
				t.Fatal(err)
			}
			test(t, url, old)
		})
	}
}

func mustExec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func openStore(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestUpgradeFromHistoryWithoutRequesters opens a database whose operations have neither requesters nor objects, and then records
// operations as a server of that release does, which may run again after a rollback. On MySQL it is as a server left it that
// stopped in the middle of the migration.
func TestUpgradeFromHistoryWithoutRequesters(t *testing.T) {
	onOldSchemas(t, 13, func(t *testing.T, url string, old *sql.DB) {
		const insert = `INSERT INTO operations (id, account, agent, server, verb, target, username, origin, state, status, reason, message, accepted, due, sent, ended)
			VALUES (%s, 'prod', 'a', 's', 'scale', 'web', 'ann', '', 'done', 200, '', '', 1, 1, 1, 1)`
		mustExec(t, old, fmt.Sprintf(insert, "'01J'"))
		s := openStore(t, url)
		mustExec(t, old, fmt.Sprintf(insert, "'01K'"))
		rows, _, err := s.Operations(t.Context(), history.Query{User: "ann"})
		if err != nil || len(rows) != 2 || rows[0].ID != "01K" || rows[1].Requester != (vedette.Requester{User: "ann"}) {
			t.Errorf("got %+v, %v, want both, the last first", rows, err)
		}
		if size, err := s.HistorySize(t.Context()); err != nil || size.Bytes < 2000 {
			t.Errorf("got %+v, %v, want an estimate of old entries", size, err)
		}
		key := vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "n", Name: "a"}
		row := history.Operation{ID: "01L", Account: "prod", State: vedette.Done, Changes: []vedette.ObjectChange{{Key: key}}, Objects: []vedette.Key{key}}
		if err := s.EndOperations(t.Context(), []history.Operation{row}); err != nil {
			t.Fatal(err)
		}
		mustExec(t, old, `DELETE FROM operations WHERE id = '01L'`) // as the old release purges
		for _, want := range []int{2, 0} {
			if n, err := s.PurgeOrphans(t.Context(), 10); err != nil || n != want {
				t.Errorf("purged %d orphans, %v, want %d", n, err, want)
			}
		}
	})
}
