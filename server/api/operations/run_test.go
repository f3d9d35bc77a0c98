package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
)

// TestOutcomesForRepeatedRequestsAreBounded ends operations whose agent sends long texts. The outcomes that are kept for requests that
// are sent again must not take the memory of the server.
func TestOutcomesForRepeatedRequestsAreBounded(t *testing.T) {
	d, long := newDedup([]byte("key")), strings.Repeat("x", 1<<20)
	for i := range 2 * maxEnded {
		op := vedette.Operation{ID: vedette.OperationID(fmt.Sprint(i)), Args: vedette.DeleteArgs{}}
		entry, _, err := d.join(op)
		if err != nil {
			t.Fatal(err)
		}
		out := vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: 500, Reason: "Odd", Message: fmt.Sprint("failed: ", i)}
		switch i % 6 {
		case 0:
			out.Message += long
		case 1:
			out.Reason += long
		case 2:
			out.Warnings = []string{long}
		case 3:
			out.Keys = []vedette.Key{{Name: long}}
		case 4:
			out.Result = []byte(`"` + long + `"`)
		}
		entry.view = newOutcome(op, out)
		d.finish(op.ID, entry)
	}
	kept := 0
	for id, entry := range d.byID {
		kept += entry.view.size()
		if !strings.HasPrefix(entry.view.Message, "failed: "+string(id)) || entry.view.Status != 500 || !entry.view.Repeated {
			t.Errorf("operation %s: got %.100q, want its outcome", id, entry.view.Message)
		}
	}
	if len(d.byID) != maxEnded || kept > 2*maxEndedBytes || kept < d.endedBytes {
		t.Errorf("got %d outcomes with %d bytes, of which %d are counted", len(d.byID), kept, d.endedBytes)
	}
	op := vedette.Operation{ID: "short", Args: vedette.DeleteArgs{}}
	entry, _, _ := d.join(op)
	entry.view = newOutcome(op, vedette.Outcome{State: vedette.Done, Keys: []vedette.Key{{Name: "web"}}, Warnings: []string{"deprecated"}})
	d.finish(op.ID, entry)
	if again, first, err := d.join(op); err != nil || first || len(again.view.Keys) != 1 || len(again.view.Warnings) != 1 {
		t.Errorf("got %+v, %v, want the short outcome as a whole", again, err)
	}
}

// otherServer is a dispatcher of a server that has not accepted an operation, and a history that says that another one has.
type otherServer struct {
	row     history.Operation
	onAwait func(*history.Operation) error
	awaited []vedette.ServerID
}

func (o *otherServer) Execute(context.Context, vedette.Operation) vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Reason: vedette.ReasonAlreadyAccepted}
}

func (o *otherServer) AwaitEnd(_ context.Context, server vedette.ServerID, _ vedette.OperationID) error {
	o.awaited = append(o.awaited, server)
	return o.onAwait(&o.row)
}

func (o *otherServer) Operation(context.Context, vedette.OperationID) (history.Operation, error) {
	return o.row, nil
}

// TestCallersWaitForOperationsOfOtherServers sends an operation to a server while another one executes it.
func TestCallersWaitForOperationsOfOtherServers(t *testing.T) {
	op := vedette.Operation{ID: "01J00000000000000000000000", Account: "prod", Args: vedette.RestartArgs{}}
	for _, tt := range []struct {
		name    string
		onAwait func(*history.Operation) error
		digest  string
		want    vedette.OutcomeState
		awaited int
	}{
		{"it ends", func(row *history.Operation) error { row.State = vedette.Done; return nil }, "", vedette.Done, 1},
		{"it has just ended", func(row *history.Operation) error { row.State = vedette.Failed; return errors.New("unknown") }, "", vedette.Failed, 1},
		{"the server cannot be asked", func(*history.Operation) error { return errors.New("unreachable") }, "", "", 1},
		{"the end is not recorded", func(*history.Operation) error { return nil }, "", "", 1},
		{"another operation has the id", nil, "sha256:other", "", 0},
	} {
		o := &otherServer{onAwait: tt.onAwait, row: history.Operation{ID: op.ID, Account: "prod", Server: "s2", State: history.Pending, Digest: tt.digest}}
		r := NewRunner(o, o, []byte("key"))
		if tt.digest == "" {
			o.row.Digest = r.dedup.digester.Of(op)
		}
		out, err := r.Run(t.Context(), op)
		if out.State != tt.want || (err == nil) != (tt.want != "") || err != nil && vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("%s: got %+v, %v", tt.name, out, err)
		}
		if len(o.awaited) != tt.awaited || tt.awaited == 1 && o.awaited[0] != "s2" {
			t.Errorf("%s: asked %v", tt.name, o.awaited)
		}
	}
}
