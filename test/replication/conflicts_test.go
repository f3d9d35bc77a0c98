package replication_test

import (
	"testing"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/storetest/suite"
	"github.com/vedette-io/vedette/test/databases"
)

// TestEachTransactionRunsTwice runs the suite on databases whose COMMIT fails with a conflict every other time. The first run of a
// transaction must leave nothing behind in memory.
func TestEachTransactionRunsTwice(t *testing.T) {
	onlyIfAll(t)
	for name, tt := range map[string]struct {
		url  func(t testing.TB) string
		code string
	}{"PostgreSQL": {databases.PostgreSQL, "40001"}, "MariaDB": {databases.MariaDB, "1213"}} {
		t.Run(name, func(t *testing.T) {
			suite.Run(t, func(t *testing.T) *store.Store {
				injector, url := databases.StartErrorInjector(t, tt.url(t))
				s := storetest.Open(t, url)
				injector.FailCommits(tt.code, 2)
				return s
			})
		})
	}
}
