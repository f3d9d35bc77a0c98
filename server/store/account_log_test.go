package store

import (
	"fmt"
	"testing"
)

// TestUncertainOutcomeIsAChange checks that an account counts as changed once a transaction has
// ended whose outcome was not known: readers may have read it before the database committed.
func TestUncertainOutcomeIsAChange(t *testing.T) {
	w := newFixture(t)
	w.commit(1, podAt(0, 1))
	_, mark := w.ChangedAccounts(0)
	w.locks.MarkUncertain("prod")
	if changed, _ := w.ChangedAccounts(mark); changed != nil {
		t.Errorf("before the outcome is known: got %v", changed)
	}
	w.commit(2, podAt(0, 2))
	changed, mark := w.ChangedAccounts(mark)
	if fmt.Sprint(changed) != "[prod]" {
		t.Errorf("after it: got %v, want [prod]", changed)
	}
	w.commit(3, podAt(0, 3))
	if changed, now := w.ChangedAccounts(mark); changed != nil || now != mark {
		t.Errorf("another Pod: got %v and the mark %d, want none and %d", changed, now, mark)
	}
}
