package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/task"
)

// deployBytes is a deployment of so many bytes.
func deployBytes(name string, bytes int) string {
	return fmt.Sprintf(`[{"deployManifest":{"account":"prod","versioned":false,"manifests":[{"apiVersion":"v1","kind":"ConfigMap",`+
		`"metadata":{"name":%q,"namespace":"shop"},"data":{"a":%q}}]}}]`, name, strings.Repeat("x", bytes))
}

// from sends a request of a client.
func (s *testServer) from(t *testing.T, address, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/kubernetes/ops", strings.NewReader(body))
	r.RemoteAddr = address
	w := httptest.NewRecorder()
	s.rest.ServeHTTP(w, r)
	return w
}

// TestTasksShareMemory lets one client deploy to a cluster that does not answer, again and again. Its tasks take half
// of the memory of tasks, and all of it is free when they have ended.
func TestTasksShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{MaxBytes: 16 << 20, ShutdownTimeout: time.Second})
		s.cluster.do = waitUntilCanceled
		stop := s.startHousekeeping(t)
		accepted := 0
		var refused *httptest.ResponseRecorder
		for i := range 20 {
			w := s.from(t, "192.0.2.1:1", deployBytes(fmt.Sprint("c", i), 1<<20))
			if w.Code != http.StatusOK {
				refused = w
				break
			}
			accepted++
		}
		if accepted < 1 || accepted > 4 || refused == nil {
			t.Fatalf("got %d tasks of 1 MiB within 8 MiB, want 1 to 4", accepted)
		}
		if refused.Code != http.StatusServiceUnavailable || refused.Header().Get("Retry-After") == "" || !strings.Contains(refused.Body.String(), "try again") {
			t.Errorf("one more: got %d %s, want %d", refused.Code, refused.Body, http.StatusServiceUnavailable)
		}
		if w := s.from(t, "192.0.2.2:1", deployBytes("other", 1<<20)); w.Code != http.StatusOK {
			t.Errorf("another client: got %d %s, want %d", w.Code, w.Body, http.StatusOK)
		}
		if w := s.from(t, "192.0.2.3:1", deployBytes("huge", 6<<20)); w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "split them") {
			t.Errorf("more than a client may have: got %d %s, want %d", w.Code, w.Body, http.StatusRequestEntityTooLarge)
		}
		if w := s.from(t, "192.0.2.3:1", "["+strings.TrimSuffix(strings.Repeat(`{"cleanupArtifacts":{"account":"prod"}},`, 4000), ",")+"]"); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("4000 operations: got %d %.300s, want %d", w.Code, w.Body, http.StatusRequestEntityTooLarge)
		}
		stop()
		synctest.Wait()
		if got := s.Memory(); got != (fair.Stats{}) {
			t.Errorf("got %+v after all tasks have ended, want nothing", got)
		}
	})
}

// TestAnswersToTasksAreCounted lets clusters answer more than the memory of tasks. The task fails, says why, and
// keeps what fits.
func TestAnswersToTasksAreCounted(t *testing.T) {
	huge := json.RawMessage(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"},"data":{"a":"` + strings.Repeat("x", 9<<20) + `"}}`)
	for name, tt := range map[string]struct {
		maxBytes int64
		answer   vedette.Outcome
		want     string
	}{
		"objects":  {16 << 20, vedette.Outcome{State: vedette.Done, Objects: []json.RawMessage{huge}}, "result is left out"},
		"messages": {256 << 10, vedette.Outcome{State: vedette.Failed, Status: 500, Message: strings.Repeat("m", 9<<20)}, "mmm…"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(task.Config{MaxBytes: tt.maxBytes})
			var used int64
			s.cluster.do = func(context.Context, vedette.Operation) vedette.Outcome {
				used = max(used, s.Memory().Used)
				return tt.answer
			}
			id := s.post(t, "/kubernetes/ops", deployBytes("c", 10))
			time.Sleep(time.Minute)
			got := s.getTask(t, id)
			raw, err := json.Marshal(got)
			if err != nil || !got.Status.Failed || !strings.Contains(string(raw), tt.want) || len(raw) > 8<<10 {
				t.Errorf("%s: got %d bytes, %.2000s, want a failed task with %q", name, len(raw), raw, tt.want)
			}
			if used == 0 || s.Memory() != (fair.Stats{}) {
				t.Errorf("%s: got %d bytes while the task ran, and %+v after it", name, used, s.Memory())
			}
		})
	}
}

// TestTaskMemoryIsMeasured compares what tasks take with what they have paid for.
func TestTaskMemoryIsMeasured(t *testing.T) {
	for name, manifest := range map[string]string{
		"text":          `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"},"data":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`,
		"short values":  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"},"data":[` + strings.Repeat(`{"":0},`, 40_000) + `0]}`,
		"short members": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"},"data":[` + strings.Repeat(`{"a":{},"b":[]},`, 20_000) + `0]}`,
	} {
		s := newServer(task.Config{})
		reached, finish := make(chan struct{}), make(chan struct{})
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			close(reached)
			<-finish
			return doneOutcome(op)
		}
		before := heapBytes()
		body := `[{"deployManifest":{"account":"prod","versioned":false,"manifests":[` + manifest + `]}}]`
		id := s.post(t, "/kubernetes/ops", body)
		<-reached
		taken := heapBytes() - before - int64(len(body))
		if paid := s.Memory().Used; taken > paid+paid/10+(64<<10) {
			t.Errorf("%s: the task takes %d KiB and has paid for %d", name, taken>>10, paid>>10)
		}
		close(finish)
		s.awaitEnd(t, id)
		runtime.KeepAlive(body)
	}
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a heap is smaller
}
