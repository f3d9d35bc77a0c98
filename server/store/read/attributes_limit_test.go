package read_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/store/read"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// TestReadsShareARowBudget stores few objects with large labels, and reads them with and without
// enough memory.
func TestReadsShareARowBudget(t *testing.T) {
	f := newFixture(t)
	kind := vedette.Kind{Name: "Pod"}
	for i := range 4 {
		o := vedette.Object{Key: vedette.Key{Kind: kind, Namespace: "n", Name: fmt.Sprint("web-", i)}, UID: fmt.Sprint("u", i), ResourceVersion: "1",
			Labels: map[string]string{fmt.Sprint("label", i): strings.Repeat("x", 10_000)}}
		f.CommitPods(i+1, o)
	}
	do := func(ctx context.Context) error {
		_, err := f.ApplicationAttributes(ctx, "web", []vedette.Kind{kind})
		return err
	}
	ctx, budget := read.WithRowBudget(t.Context(), 90_000)
	if err := do(ctx); err != nil || budget.Used() < 40_000 {
		t.Errorf("got %v and %d bytes used, want no error and 40,000 at least", err, budget.Used())
	}
	_ = do(ctx)
	if err := do(ctx); !errors.Is(err, read.ErrRowBudget) || vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("a read without memory: got %v, want %v", err, read.ErrRowBudget)
	}
	if err := do(t.Context()); err != nil {
		t.Errorf("a read without a budget: got %v", err)
	}
}

// TestLongNamesAreNotShortened asks for an application whose name begins with another one's, which
// has the longest name that is stored.
func TestLongNamesAreNotShortened(t *testing.T) {
	f := newFixture(t)
	name := strings.Repeat("a", sqldb.MaxApplication)
	o := storetest.PodAt(0, 1)
	o.Annotations = map[string]string{"moniker.spinnaker.io/application": name}
	f.CommitPods(1, o)
	for application, want := range map[string]int{name: 1, name + "b": 0, name[1:]: 0, "\x00": 0, "\xff": 0} {
		rows, err := f.ApplicationAttributes(t.Context(), application, nil)
		if err != nil || len(rows) != want {
			t.Errorf("%.300q: got %d rows and error %v, want %d", application, len(rows), err, want)
		}
	}
}
