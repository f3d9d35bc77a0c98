package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
)

// TestOutputsAreBounded holds that a task keeps the newest outputs, of bounded
// length, and that another server tells them too.
func TestOutputsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		s, other := newServer(task.Config{Store: book, Output: task.OutputOfAll}), newServer(task.Config{Store: book})
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			if op.Args.(vedette.ScaleArgs).Name == "w599" {
				return vedette.Outcome{State: vedette.Failed, Status: 500, Message: strings.Repeat("\u00e4", 5000)}
			}
			return vedette.Outcome{State: vedette.Done}
		}
		var ops []string
		for i := range 600 {
			ops = append(ops, fmt.Sprintf(`{"scaleManifest":{"account":"prod","manifestName":"deployment w%d","location":"shop","replicas":3}}`, i))
		}
		id := s.post(t, "/kubernetes/ops", "["+strings.Join(ops, ",")+"]")
		synctest.Wait()
		_, answer := other.ask(t, http.MethodGet, "/task/"+id, "")
		var told struct {
			Outputs []struct{ Manifest, Phase, StdOut, StdError string }
		}
		if err := json.Unmarshal([]byte(answer), &told); err != nil {
			t.Fatal(err)
		}
		if n := len(told.Outputs); n != 500 || told.Outputs[0].Manifest != "deployment/w100" || told.Outputs[n-1].Manifest != "deployment/w599" {
			t.Errorf("%d outputs are kept, from %+v on", n, told.Outputs[0])
		}
		if last := told.Outputs[499].StdError; len(last) > 2<<10+len("\u2026") || !utf8.ValidString(last) || !strings.HasSuffix(last, "\u2026") {
			t.Errorf("the last output has %d bytes: %q", len(last), last)
		}
	})
}
