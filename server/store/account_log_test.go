package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestAccountLogNamesEachAccountOnce(t *testing.T) {
	var l accountLog
	_, start, complete := l.since(0)
	if start != 0 || !complete {
		t.Fatalf("an empty log: got position %d, complete %v", start, complete)
	}
	for _, name := range []vedette.AccountName{"a", "b", "a"} {
		l.add(name)
	}
	names, end, complete := l.since(start)
	if !slices.Equal(names, []vedette.AccountName{"a", "b"}) || !complete {
		t.Errorf("got %v, complete %v; want a and b", names, complete)
	}
	l.add("c")
	if names, _, complete := l.since(end); !slices.Equal(names, []vedette.AccountName{"c"}) || !complete {
		t.Errorf("after the first read: got %v, complete %v; want c", names, complete)
	}
	if _, _, complete := l.since(end + 2); complete {
		t.Error("a position that was never returned: got a complete answer")
	}
}

func TestAccountLogIsIncompleteAfterItsSize(t *testing.T) {
	var l accountLog
	for i := range accountLogSize + 1 {
		l.add(vedette.AccountName(fmt.Sprint(i)))
	}
	if _, _, complete := l.since(0); complete {
		t.Error("an overwritten entry: got a complete answer")
	}
	names, end, complete := l.since(1)
	if len(names) != accountLogSize || names[0] != "1" || !complete {
		t.Errorf("the whole log: got %d names, complete %v", len(names), complete)
	}
	l.reset()
	if _, _, complete := l.since(end); complete {
		t.Error("after a reset: got a complete answer")
	}
}

// TestUncertainOutcomeIsAChange checks that an account counts as changed once a transaction has
// ended whose outcome was not known: readers may have read it before the database committed.
func TestUncertainOutcomeIsAChange(t *testing.T) {
	w := newFixture(t)
	w.commit(1, podAt(0, 1))
	_, position, _ := w.ChangedAccounts(0)
	w.locks.MarkUncertain("prod")
	if changed, _, _ := w.ChangedAccounts(position); changed != nil {
		t.Errorf("before the outcome is known: got %v", changed)
	}
	w.commit(2, podAt(0, 2))
	changed, position, _ := w.ChangedAccounts(position)
	if fmt.Sprint(changed) != "[prod]" {
		t.Errorf("after it: got %v, want [prod]", changed)
	}
	w.commit(3, podAt(0, 3))
	if changed, now, _ := w.ChangedAccounts(position); changed != nil || now != position {
		t.Errorf("another Pod: got %v and the position %d, want none and %d", changed, now, position)
	}
}
