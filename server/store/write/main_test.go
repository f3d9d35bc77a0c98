package write_test

import (
	"os"
	"testing"

	"github.com/vedette-io/vedette/test/databases"
)

func TestMain(m *testing.M) { os.Exit(databases.Main(m)) }
