package sqldb_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

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
		writes, _, _ := ours.Pools()
		if got := schemaOf(t, writes); !slices.Equal(got, want) || len(got) < 20 {
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
