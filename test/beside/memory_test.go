package beside

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/vedette-io/vedette/test/beside/standin"
)

// maxMemoryMiB is what a server with the default limits may use.
const maxMemoryMiB = 512

// checkMemory checks the most memory that the server has used so far.
func (w *badWorld) checkMemory(after string) {
	w.t.Helper()
	peak := peakMemoryMiB(w.t, w.in.server.cmd.Process.Pid)
	w.t.Logf("the server has used up to %d MiB after %s", peak, after)
	if peak >= maxMemoryMiB {
		w.t.Errorf("the server has used up to %d MiB after %s, want less than %d", peak, after, maxMemoryMiB)
	}
}

// peakMemoryMiB returns the peak of a process's resident set size.
func peakMemoryMiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("got no VmHWM in %s", status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// checkManyLargeAnswers asks for 32 answers of 10 MB at once.
func (w *badWorld) checkManyLargeAnswers() {
	const size, callers = 10 << 20, 32
	w.standIn.Misbehave(standin.Huge(size))
	defer w.standIn.Misbehave(nil)
	found := newProblems()
	var asking sync.WaitGroup
	for i := range callers {
		asking.Go(func() {
			a := send(w.t.Context(), http.MethodGet, w.in.url+"/applications/shared/serverGroups", nil)
			isRefused := a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != ""
			if a.err != nil || !isRefused && (a.status != http.StatusOK || len(a.body) < size) {
				found.add(fmt.Sprintf("answer %d of %d bytes", i, len(a.body)), a.String())
			}
		})
	}
	asking.Wait()
	found.report(w.t)
	w.checkMemory("32 answers of 10 MB at once")
}
