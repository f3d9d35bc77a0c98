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

// TestOutputsAreBounded checks that a task keeps the newest outputs with a bounded length, and
// that other servers return them too.
func TestOutputsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		s, other := newServer(task.Config{Store: memory, Output: task.OutputAll}), newServer(task.Config{Store: memory})
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
		_, response := other.request(t, http.MethodGet, "/task/"+id, "")
		var got struct {
			Outputs []struct{ Manifest, Phase, StdOut, StdError string }
		}
		if err := json.Unmarshal([]byte(response), &got); err != nil {
			t.Fatal(err)
		}
		if n := len(got.Outputs); n != 500 || got.Outputs[0].Manifest != "deployment/w100" || got.Outputs[n-1].Manifest != "deployment/w599" {
			t.Errorf("got %d outputs, the first is %+v", n, got.Outputs[0])
		}
		if last := got.Outputs[499].StdError; len(last) > 2<<10+len("\u2026") || !utf8.ValidString(last) || !strings.HasSuffix(last, "\u2026") {
			t.Errorf("got %d bytes in the last output: %q", len(last), last)
		}
	})
}
