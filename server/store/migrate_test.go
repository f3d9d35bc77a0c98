package store

import (
	"context"
	"testing"

	"github.com/vedette-io/vedette/test/databases"
)

// TestSchemaOfBeforeDryRuns takes a database back to the version before, with an
// operation in it, and opens it as it was left by a server that ended in the midst
// of migrating, too.
func TestSchemaOfBeforeDryRuns(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite:" + t.TempDir() + "/vedette.db" },
		"PostgreSQL": databases.PostgreSQL,
		"MariaDB":    databases.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			url := url(t)
			open := func() *Store {
				s, err := Open(t.Context(), Config{URL: url})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			leave := func(s *Store, statements ...string) {
				t.Helper()
				err := s.write(t.Context(), func(ctx context.Context, tx *tx) error {
					for _, text := range statements {
						if _, err := tx.exec(ctx, text); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			const forget = `DELETE FROM schema_version WHERE version_id >= 3`
			index := `DROP INDEX accounts_retired`
			if name == "MariaDB" {
				index += ` ON accounts`
			}
			leave(open(), `ALTER TABLE operations DROP COLUMN dry_run`, `DROP TABLE lease`, index,
				`ALTER TABLE accounts DROP COLUMN retired`, `ALTER TABLE accounts DROP COLUMN permitted_by`, forget,
				`INSERT INTO operations (id, account, agent, server, verb, target, username, origin, state, status, reason, message, accepted, due, sent, ended)
				VALUES ('01J', 'prod', 'a', 's', 'scale', 'web', '', '', 'done', 200, '', '', 1, 1, 1, 1)`)
			s := open()
			if o, err := s.Operation(t.Context(), "01J"); err != nil || o.DryRun || o.Verb != "scale" {
				t.Errorf("the operation is %+v, %v", o, err)
			}
			if name == "MariaDB" { // whose change of the schema is not taken back with the rest
				leave(s, forget)
				s = open()
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
