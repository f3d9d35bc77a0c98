package write_test

import (
	"testing"

	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// fixture has the methods of this package's tests.
type fixture struct{ *storetest.Fixture }

func newFixture(t *testing.T) *fixture { return &fixture{storetest.NewFixture(t)} }

func newFixtureWith(t *testing.T, cfg sqldb.Config) *fixture {
	return &fixture{storetest.NewFixtureWith(t, cfg)}
}
