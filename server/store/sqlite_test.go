package store_test

import (
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/storetest"
)

func TestSQLite(t *testing.T) {
	storetest.Run(t, openSQLite)
}

func openSQLite(t *testing.T) *store.Store {
	return storetest.Open(t, "sqlite:"+filepath.Join(t.TempDir(), "vedette.db"))
}
