package store_test

import (
	"testing"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

func TestPostgreSQL(t *testing.T) {
	databases.PostgreSQL(t) // keeps the server up between the tests
	storetest.Run(t, func(t *testing.T) *store.Store { return storetest.Open(t, databases.PostgreSQL(t)) })
}

func TestMariaDB(t *testing.T) {
	databases.MariaDB(t)
	storetest.Run(t, func(t *testing.T) *store.Store { return storetest.Open(t, databases.MariaDB(t)) })
}
