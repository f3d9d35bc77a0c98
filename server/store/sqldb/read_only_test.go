package sqldb_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// TestReadOnlyFileIsNoticed checks that a SQLite database that has become read-only is, although transactions do not even begin
// then, and that it is noticed when it takes writes again.
func TestReadOnlyFileIsNoticed(t *testing.T) {
	s, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	writes, _, _ := s.Pools()
	for _, tt := range []struct {
		pragma string
		want   sqldb.WriteProblem
	}{{"PRAGMA query_only = 1", sqldb.ReadOnly}, {"PRAGMA query_only = 0", ""}} {
		if _, err := writes.ExecContext(t.Context(), tt.pragma); err != nil {
			t.Fatal(err)
		}
		err := s.CheckWritable(t.Context())
		if tt.want != "" {
			err = s.RecordLastSeen(t.Context(), []registry.LastSeen{{Account: "a", At: time.Now()}})
		}
		s.AgeWriteProblem()
		if got := s.WriteProblem(); got != tt.want {
			t.Errorf("%s: got problem %q after the error %v, want %q", tt.pragma, got, err, tt.want)
		}
	}
}
