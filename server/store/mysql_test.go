package store

import (
	"context"
	"database/sql"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/databases"
)

// TestMySQLReadsWhatIsCommitted looks at connections of both pools. The variable has
// two names: MySQL's, and that of MariaDB before 11.1.
func TestMySQLReadsWhatIsCommitted(t *testing.T) {
	s, err := Open(context.Background(), Config{URL: databases.MariaDB(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for name, db := range map[string]*sql.DB{"transactions": s.db, "migrations": s.migrator} {
		var variable, level string
		err := db.QueryRow(`SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')`).Scan(&variable, &level)
		if err != nil || level != "READ-COMMITTED" {
			t.Errorf("%s: %s is %q, %v", name, variable, level, err)
		}
	}
}

// TestReservedWordsAreQuoted holds for MySQL what a MariaDB can't tell: it reserves
// fewer words.
func TestReservedWordsAreQuoted(t *testing.T) {
	text, err := os.ReadFile("testdata/mysql-reserved.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\n")
	reserved := strings.Fields(list)
	s, err := Open(t.Context(), Config{URL: databases.MariaDB(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var found []string
	err = s.each(t.Context(), func(rows *sql.Rows) error {
		var table, column string
		err := rows.Scan(&table, &column)
		for _, name := range []string{table, column} {
			if slices.Contains(reserved, strings.ToLower(name)) {
				found = append(found, name)
			}
		}
		return err
	}, `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE()`)
	if err != nil || !slices.Equal(found, []string{"stored"}) {
		t.Errorf("tables and columns with reserved names: %q, %v", found, err)
	}
	first, err := migrationFiles.ReadFile("migrations/mysql/00001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(first), mysqlUpsertText(1)} {
		if !strings.Contains(text, "`stored`") || strings.Contains(strings.ReplaceAll(text, "`stored`", ""), "stored") {
			t.Errorf("a reserved word stands without quotes in %.400s", text)
		}
	}
}
