package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// expectProbe checks the description of a database, or the error.
func expectProbe(t *testing.T, url, want string, kind vedette.ErrorKind) {
	t.Helper()
	detail, err := sqldb.Probe(t.Context(), sqldb.Config{URL: url})
	if kind == "" && (err != nil || !strings.Contains(detail, want)) {
		t.Errorf("got %q, %v, want %q", detail, err, want)
	}
	if kind != "" && (vedette.KindOf(err) != kind || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %q, %v, want an error of kind %s with %q", detail, err, kind, want)
	}
}

func TestProbeSQLite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "vedette.db")
	expectProbe(t, "sqlite:"+path, "the server will create "+path, "")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("got %v, %v after the probe, want an empty directory", entries, err)
	}
	s := storetest.Open(t, "sqlite:"+path)
	expectProbe(t, "sqlite:"+path, "SQLite: schema version ", "") // while a server uses it
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	other := filepath.Join(dir, "other.db")
	if err := os.WriteFile(other, []byte(strings.Repeat("not a database", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	expectProbe(t, "sqlite:"+other, "is not a SQLite database", vedette.Invalid)
	expectProbe(t, "sqlite:/dev/null/vedette.db", "/dev/null/vedette.db", vedette.Invalid)
}

func TestProbeSaysWhoUsesTheDatabase(t *testing.T) {
	for name, start := range map[string]func(testing.TB) string{"PostgreSQL": databases.PostgreSQL, "MySQL": databases.MariaDB} {
		t.Run(name, func(t *testing.T) {
			url := start(t)
			expectProbe(t, url, name+": no tables yet", "")
			s, err := store.Open(t.Context(), sqldb.Config{URL: url, Server: "s1", Host: "h1"})
			if err != nil {
				t.Fatal(err)
			}
			expectProbe(t, url, "in use by server s1 on host h1", "")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if detail, err := sqldb.Probe(t.Context(), sqldb.Config{URL: url}); err != nil || strings.Contains(detail, "in use") {
				t.Errorf("after the server has stopped: got %q, %v", detail, err)
			}
			if err := databases.Exec(url, `DELETE FROM schema_version WHERE version_id > 7`); err != nil {
				t.Fatal(err)
			}
			expectProbe(t, url, "schema version 7: the server migrates it to ", "")
			if err := databases.Exec(url, `UPDATE schema_version SET version_id = 1000 WHERE version_id = 1`); err != nil {
				t.Fatal(err)
			}
			expectProbe(t, url, "a newer server has migrated it", vedette.Invalid)
			if err := databases.Exec(url, `DROP TABLE schema_version`); err != nil {
				t.Fatal(err)
			}
			expectProbe(t, url, "no tables yet", "")
		})
	}
}

// TestURLsAreValidated checks what is found without a connection.
func TestURLsAreValidated(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:secret@h/d":                   "",
		"mysql://u:secret@h/d?tls=true":             "",
		"sqlite:/nowhere/vedette.db":                "",
		"oracle://h/d":                              `unknown scheme "oracle"`,
		"h/d":                                       "has no scheme",
		"postgres://u:secret@h/d?sslmode=no":        "the PostgreSQL URL cannot be read: sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full",
		"postgres://u:secret@h/d?sslcert=/dev/null": "sslcert and sslkey must be set together",
		"postgres://u:%zz@h/d":                      "it must look like postgres://USER:PASSWORD@HOST",
		"postgres://u:secret@h/d?sslmode=verify-full&sslrootcert=/no/such/file": "the PostgreSQL URL cannot be read: sslrootcert names the file /no/such/file, which cannot be read",
		"mysql://u:secret@h/d?tls=no-such-config":                               "the MySQL URL cannot be read",
	} {
		err := sqldb.Config{URL: url}.Validate(t.Context())
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
}

// TestUnsolvableRefusalsEndTheStart checks that what retrying does not solve ends the start, in words.
func TestUnsolvableRefusalsEndTheStart(t *testing.T) {
	postgres, mariadb := databases.PostgreSQL(t), databases.MariaDB(t)
	with := func(url, old, replacement string) string {
		t.Helper()
		if !strings.Contains(url, old) {
			t.Fatalf("%s has no %q", url, old)
		}
		return strings.Replace(url, old, replacement, 1)
	}
	name := postgres[strings.LastIndex(postgres, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	require := func(url, parameter string) string {
		if strings.Contains(url, "?") {
			return url + "&" + parameter
		}
		return url + "?" + parameter
	}
	for _, tt := range []struct{ name, url, want string }{
		{"PostgreSQL without TLS", require(postgres, "sslmode=require"), "which the PostgreSQL server does not offer"},
		{"PostgreSQL without TLS, verified", require(postgres, "sslmode=verify-full"), "sslmode=disable"},
		{"no such database of PostgreSQL", with(postgres, "/"+name, "/nosuchdb"), "check the URL"},
		{"MariaDB without TLS", require(mariadb, "tls=true"), "which the MySQL server does not support"},
		{"a wrong password of MariaDB", with(mariadb, "vedette:vedette@", "vedette:wrong@"), "check the URL and the user's privileges"},
	} {
		_, err := store.Open(t.Context(), sqldb.Config{URL: tt.url})
		if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v of kind %q, want %q of kind %q", tt.name, err, vedette.KindOf(err), tt.want, vedette.Invalid)
		}
		expectProbe(t, tt.url, tt.want, vedette.Invalid)
	}
	if s, err := store.Open(t.Context(), sqldb.Config{URL: require(postgres, "sslmode=prefer")}); err != nil {
		t.Errorf("TLS is optional: got %v", err)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
	_, err := store.Open(t.Context(), sqldb.Config{URL: "postgres://u@127.0.0.1:1/d?sslmode=require"})
	if vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("nothing listens: got %v of kind %q, want %q", err, vedette.KindOf(err), vedette.Unavailable)
	}
}

// TestAnonymousUserOfMariaDB checks that a stock installation, in which an anonymous user of the
// local host takes precedence over a user of any host, is explained, and that the statements of
// docs/databases.md solve it.
func TestAnonymousUserOfMariaDB(t *testing.T) {
	server := databases.StartMariaDB(t, databases.Options{})
	for _, statement := range []string{
		`CREATE USER IF NOT EXISTS ''@'127.0.0.1'`,
		`CREATE USER shop IDENTIFIED BY 'secret'`, `GRANT ALL ON vedette.* TO shop`,
	} {
		if err := databases.Exec(server.URL, statement); err != nil {
			t.Fatal(err)
		}
	}
	url := strings.Replace(server.URL, "vedette:vedette@", "shop:secret@", 1)
	expectProbe(t, url, "an anonymous user of this host may be chosen instead", vedette.Invalid)
	for _, statement := range []string{`CREATE USER shop@'127.0.0.1' IDENTIFIED BY 'secret'`, `GRANT ALL ON vedette.* TO shop@'127.0.0.1'`} {
		if err := databases.Exec(server.URL, statement); err != nil {
			t.Fatal(err)
		}
	}
	expectProbe(t, url, "MySQL: no tables yet", "")
}
