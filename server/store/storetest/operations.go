package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
)

// Web is the object that operations change.
var Web = vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "shop", Name: "web"}

var requester = vedette.Requester{User: "ann@example.org", Claimed: "bob", Proven: "certificate CN=ann@example.org", Service: "orca",
	Address: "10.1.2.3"}

// Operation returns a pending operation; operations with higher numbers are newer.
func Operation(n int) history.Operation {
	return history.Operation{
		ID: vedette.OperationID(fmt.Sprintf("01J%023d", n)), Account: "prod", Agent: "agent-1", Server: "server-1", Verb: vedette.VerbApply,
		DryRun: n%2 == 1,
		Target: "Deployment shop/web", Requester: requester, Origin: "task 01J", State: history.Pending,
		Accepted: time.UnixMicro(1_700_000_000_000_000 + int64(n)).UTC(),
	}
}

// Ended returns an operation after its end.
func Ended(o history.Operation, state vedette.OutcomeState) history.Operation {
	o.State = state
	o.Status = 200
	o.Sent = o.Accepted.Add(time.Microsecond)
	o.Ended = o.Accepted.Add(time.Minute)
	return o
}

// BeginOperation stores an operation that begins.
func BeginOperation(t *testing.T, s *store.Store, o history.Operation) {
	t.Helper()
	if err := s.BeginOperation(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// CheckOperation reads an operation and compares all of it.
func CheckOperation(t *testing.T, s *store.Store, want history.Operation) {
	t.Helper()
	if got, err := s.Operation(t.Context(), want.ID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}
