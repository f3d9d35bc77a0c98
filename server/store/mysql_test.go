package store

import (
	"context"
	"database/sql"
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
