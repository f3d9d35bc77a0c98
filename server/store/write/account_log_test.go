package write_test

import (
	"fmt"
	"testing"

	"github.com/vedette-io/vedette/server/store/storetest"
)

// TestUncertainOutcomeIsAChange checks that an account counts as changed once a transaction has
// ended whose outcome was not known: readers may have read it before the database committed.
func TestUncertainOutcomeIsAChange(t *testing.T) {
	f := newFixture(t)
	f.CommitPods(1, storetest.PodAt(0, 1))
	mark := f.ChangedAccounts(0).Mark
	f.Locks().MarkUncertain("prod")
	if changed := f.ChangedAccounts(mark).Names; changed != nil {
		t.Errorf("before the outcome is known: got %v", changed)
	}
	f.CommitPods(2, storetest.PodAt(0, 2))
	changed := f.ChangedAccounts(mark)
	if fmt.Sprint(changed.Names) != "[prod]" {
		t.Errorf("after it: got %v, want [prod]", changed.Names)
	}
	f.CommitPods(3, storetest.PodAt(0, 3))
	if after := f.ChangedAccounts(changed.Mark); after.Names != nil || after.Mark != changed.Mark {
		t.Errorf("another Pod: got %v and the mark %d, want none and %d", after.Names, after.Mark, changed.Mark)
	}
}
