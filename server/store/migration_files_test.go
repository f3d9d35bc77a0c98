package store

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

func TestSplitMigration(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // nil if the file is rejected
	}{
		{"comments between statements", "-- +goose Up\n-- why\nA;\n\n-- because\nB\n\t-- kept\n\t(c);\n", []string{"A;", "B\n\t-- kept\n\t(c);"}},
		{"a semicolon within a line", "-- +goose Up\nINSERT ';' INTO a;\nB;\n", []string{"INSERT ';' INTO a;", "B;"}},
		{"windows line ends within", "-- +goose Up\nA;\r\nB;\r\n", []string{"A;", "B;"}},
		{"no annotation", "A;\n", nil},
		{"another annotation", "-- +goose Up\nA;\n-- +goose Down\nB;\n", nil},
		{"an unfinished statement", "-- +goose Up\nA;\nB\n", nil},
	} {
		got, err := splitMigration(tt.text)
		if (err != nil) != (tt.want == nil) || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// TestMigrationsCreateTheSchemaOfGoose compares the schema of a new database with the one that
// goose creates from the same files, as servers did before they read the files themselves.
func TestMigrationsCreateTheSchemaOfGoose(t *testing.T) {
	onOldSchemas(t, goose.MaxVersion, func(t *testing.T, url string, old *sql.DB) {
		openStore(t, url) // finds nothing to migrate
		if !strings.HasPrefix(url, "sqlite:") {
			return // because only SQLite keeps the text of statements
		}
		want := schemaOf(t, old)
		ours := openStore(t, "sqlite:"+t.TempDir()+"/vedette.db")
		if got := schemaOf(t, ours.db); !slices.Equal(got, want) || len(got) < 20 {
			t.Errorf("got schema\n%q\nwant\n%q", got, want)
		}
	})
}

func schemaOf(t *testing.T, db *sql.DB) (statements []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT COALESCE(sql, name) FROM sqlite_master ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var statement string
		if err := rows.Scan(&statement); err != nil {
			t.Fatal(err)
		}
		statements = append(statements, statement)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return statements
}
