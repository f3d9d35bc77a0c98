package lifecycle

import (
	"net/http"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// TestMissingAccountIsNoMissingObject checks that callers who take 404 for a missing object, for example to wait until it is deleted, do not
// take an account for it that was removed because its agent was away.
func TestMissingAccountIsNoMissingObject(t *testing.T) {
	now := time.Now()
	o := New(vedette.Operation{Account: "prod", Args: vedette.GetArgs{}, Deadline: now.Add(time.Minute)}, now)
	o.Step(Unserved{}, now)
	effects := o.Step(Looked{IsGone: true}, now)
	end, ok := effects[0].(End)
	if !ok || end.Outcome.State != vedette.Failed || end.Outcome.Status == http.StatusNotFound || end.Outcome.Reason != vedette.ReasonNoAccount {
		t.Errorf("got %+v, want a failure that says nothing about objects", effects)
	}
}
