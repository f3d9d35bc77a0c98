package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestAttributeRowsAreLimited adds one row more than the limit.
func TestAttributeRowsAreLimited(t *testing.T) {
	c := attributeScanner{accounts: map[int64]vedette.AccountName{1: "prod"}, kinds: map[int64]vedette.Kind{2: {Name: "Pod"}}, limit: 3, budget: &RowBudget{limit: 1 << 20},
		id: 1<<accountShift + 2, name: "web"}
	for i := range 4 {
		err := c.add()
		if isOver := i == 3; (vedette.KindOf(err) == vedette.Unavailable) != isOver || isOver && !strings.Contains(err.Error(), "more than 3 objects") {
			t.Errorf("row %d: got %v, want an error only for the last", i, err)
		}
	}
	if c.count() != 3 {
		t.Errorf("got %d rows, want 3", c.count())
	}
}

// TestReadsShareARowBudget stores few objects with large labels, and reads them with and without
// enough memory.
func TestReadsShareARowBudget(t *testing.T) {
	w := newFixture(t)
	kind := vedette.Kind{Name: "Pod"}
	for i := range 4 {
		o := vedette.Object{Key: vedette.Key{Kind: kind, Namespace: "n", Name: fmt.Sprint("web-", i)}, UID: fmt.Sprint("u", i), ResourceVersion: "1",
			Labels: map[string]string{fmt.Sprint("label", i): strings.Repeat("x", 10_000)}}
		w.commit(i+1, o)
	}
	read := func(ctx context.Context) error {
		_, err := w.ApplicationAttributes(ctx, "web", []vedette.Kind{kind})
		return err
	}
	ctx, budget := WithRowBudget(t.Context(), 90_000)
	if err := read(ctx); err != nil || budget.Used() < 40_000 {
		t.Errorf("got %v and %d bytes used, want no error and 40,000 at least", err, budget.Used())
	}
	_ = read(ctx)
	if err := read(ctx); !errors.Is(err, ErrRowBudget) || vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("a read without memory: got %v, want %v", err, ErrRowBudget)
	}
	if err := read(t.Context()); err != nil {
		t.Errorf("a read without a budget: got %v", err)
	}
}

// TestLongNamesAreNotShortened asks for an application whose name begins with another one's, which
// has the longest name that is stored.
func TestLongNamesAreNotShortened(t *testing.T) {
	w := newFixture(t)
	name := strings.Repeat("a", maxApplication)
	o := podAt(0, 1)
	o.Annotations = map[string]string{"moniker.spinnaker.io/application": name}
	w.commit(1, o)
	for application, want := range map[string]int{name: 1, name + "b": 0, name[1:]: 0, "\x00": 0, "\xff": 0} {
		rows, err := w.ApplicationAttributes(t.Context(), application, nil)
		if err != nil || len(rows) != want {
			t.Errorf("%.300q: got %d rows and error %v, want %d", application, len(rows), err, want)
		}
	}
}
