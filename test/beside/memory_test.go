package beside

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette/test/beside/standin"
)

// maxMemoryMiB is what a server with the default limits may use.
const maxMemoryMiB = 512

// checkMemory checks the most memory that the server has used so far.
func (w *badWorld) checkMemory(after string) {
	w.t.Helper()
	used, err := w.in.server.Process().Usage()
	if err != nil {
		w.t.Fatal(err)
	}
	peak := used.Peak >> 20
	w.t.Logf("the server has used up to %d MiB after %s", peak, after)
	if peak >= maxMemoryMiB {
		w.t.Errorf("the server has used up to %d MiB after %s, want less than %d", peak, after, maxMemoryMiB)
	}
}

// TestManyLargeAnswers asks for 32 answers of 10 MB at once. Each is complete or status 503, and they do not fill the memory.
func TestManyLargeAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts programs")
	}
	const size, callers = 10 << 20, 32
	w := newBadWorld(t, "")
	w.standIn.Misbehave(standin.Huge(size))
	found := newProblems()
	var asking sync.WaitGroup
	var complete atomic.Int32
	for i := range callers {
		asking.Go(func() {
			a := send(t.Context(), http.MethodGet, w.in.url+"/applications/shared/serverGroups", nil)
			switch isRefused := a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""; {
			case a.err == nil && a.status == http.StatusOK && len(a.body) >= size:
				complete.Add(1)
			case a.err != nil || !isRefused:
				found.add(fmt.Sprintf("answer %d of %d bytes", i, len(a.body)), a.String())
			}
		})
	}
	asking.Wait()
	found.report(t)
	t.Logf("%d of %d answers were complete", complete.Load(), callers)
	if complete.Load() == 0 {
		t.Error("got no complete answer, want some")
	}
	w.checkMemory("32 answers of 10 MB at once")
}
