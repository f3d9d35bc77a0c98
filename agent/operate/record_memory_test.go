package operate

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/internal/fair"
)

// TestRecordTakesOnlyWhatItKeeps checks what memory an operation holds while it changes an object that it has read only for the record: that of
// the redacted object, and not that of the answer. A conflict does not add to it.
func TestRecordTakesOnlyWhatItKeeps(t *testing.T) {
	fields := strings.Repeat(`{"manager":"m","fieldsV1":{"f:a":{}}},`, 10_000)
	large := strings.Replace(objectOfX, `"uid"`, `"managedFields":[`+fields+`{}],"uid"`, 1)
	var memory *fair.SplitGrant
	var held []int64
	o := newFakeOperator(t, Config{Requests: request.Config{InitialBackoff: time.Millisecond, MaxBackoff: time.Millisecond}}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			if held = append(held, memory.Units()); len(held) < 3 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
		}
		fmt.Fprint(w, large)
	})
	memory = fair.NewSplit(fair.Config{}, fair.Config{Capacity: 64 << 20}, 0).TryAcquire("a", 1)
	before := memory.Units()
	out := o.ExecuteControlled(t.Context(), vedette.Operation{Deadline: time.Now().Add(time.Minute),
		Args: vedette.PatchArgs{Target: configMapX, Type: vedette.MergePatch, Patch: []byte(`{"data":{"a":"b"}}`)}}, request.Control{Memory: memory})
	if out.State != vedette.Done || len(held) != 3 {
		t.Fatalf("got %s %d %s after %d patches", out.State, out.Status, out.Message, len(held))
	}
	for i, n := range held {
		if n -= before; n < int64(len(objectOfX))/2 || n > 10_000 { // with the kinds and the patch
			t.Errorf("patch %d: got %d bytes held, want those of an object of %d bytes; the answer had %d", i, n, len(objectOfX), len(large))
		}
	}
}
