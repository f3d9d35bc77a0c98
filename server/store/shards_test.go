package store_test

import (
	"testing"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/storetest/suite"
	"github.com/vedette-io/vedette/test/databases"
)

// TestSeveralSQLite runs the suite on three databases, over which accounts are spread.
func TestSeveralSQLite(t *testing.T) {
	suite.Run(t, func(t *testing.T) *store.Store {
		return storetest.OpenConfig(t, sqldb.Config{URL: sqliteURL(t), Shards: []sqldb.Shard{{Name: "b", URL: sqliteURL(t)}, {Name: "c", URL: sqliteURL(t)}}})
	})
}

func TestSeveralPostgreSQL(t *testing.T) {
	suite.Run(t, func(t *testing.T) *store.Store {
		return storetest.OpenConfig(t, sqldb.Config{URL: databases.PostgreSQL(t), Shards: []sqldb.Shard{{Name: "b", URL: databases.PostgreSQL(t)}}})
	})
}

// TestPostgreSQLAndMariaDB runs the suite on databases of two kinds.
func TestPostgreSQLAndMariaDB(t *testing.T) {
	suite.Run(t, func(t *testing.T) *store.Store {
		return storetest.OpenConfig(t, sqldb.Config{URL: databases.PostgreSQL(t), Shards: []sqldb.Shard{{Name: "b", URL: databases.MariaDB(t)}}})
	})
}
