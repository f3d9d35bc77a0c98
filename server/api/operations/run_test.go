package operations

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
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
