package convergence

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFullDiskIsReported fills the disk of the database, or makes it a read-only standby, while changes arrive.
// The server must say so, and after the end of it store everything by itself.
func TestFullDiskIsReported(t *testing.T) {
	type problem struct {
		name, text string
		begin, end func()
	}
	runOn(t, everyDatabase(), singleAgent, func(t *testing.T, w *world) {
		var problems []problem
		switch {
		case w.db.disk == nil:
			full, readOnly := "53100", "25006"
			if w.db.name == "mariadb" {
				full, readOnly = "1021", "1836"
			}
			fail := func(code string) func() { return func() { w.db.errorInjector.FailWrites(code) } }
			problems = []problem{
				{"a full disk", "the disk of the database is full", fail(full), w.db.errorInjector.Reset},
				{"a failover", "the database is read-only", fail(readOnly), w.db.errorInjector.Reset},
			}
		case !w.db.disk.mounted:
			t.Skip("mounting a small file system requires root")
		default:
			problems = []problem{{"a full disk", "the disk of the database is full", w.db.disk.fill, w.db.disk.free}}
		}
		for i, p := range problems {
			p.begin()
			stop := w.changeObjects(fmt.Sprintf("during-%d", i))
			for _, path := range []string{"/health", "/health/readiness"} {
				var code int
				var body string
				if !w.eventually(time.Minute, func(ctx context.Context) bool {
					code, body = w.get(ctx, path)
					return code == http.StatusServiceUnavailable && strings.Contains(body, p.text)
				}) {
					t.Errorf("%s: GET %s: got %d %s, want %q", p.name, path, code, body, p.text)
				}
			}
			stop()
			p.end()
			if !w.eventually(time.Minute, func(ctx context.Context) bool {
				health, _ := w.get(ctx, "/health")
				ready, _ := w.get(ctx, "/health/readiness")
				return health == http.StatusOK && ready == http.StatusOK
			}) {
				t.Errorf("after %s: the server does not become ready", p.name)
			}
			w.awaitConvergence()
		}
	})
}

// changeObjects creates objects in the first cluster until it is stopped.
func (w *world) changeObjects(prefix string) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			o := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("%s-%d", prefix, n)},
				"data": map[string]any{"text": strings.Repeat("some text that takes room ", 400)}}
			_ = w.clusters[0].Create(ctx, configMap.list(namespaces[0]), o) // what the cluster has is compared later
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// get returns the answer of the server; 0 if there is none.
func (w *world) get(ctx context.Context, path string) (code int, body string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.rest+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}
