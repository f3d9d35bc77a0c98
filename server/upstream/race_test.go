package upstream

import (
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestConcurrentMergesReleaseTheirMemory merges answers of all kinds at once, with callers that leave and an upstream
// Clouddriver that is sometimes slow.
func TestConcurrentMergesReleaseTheirMemory(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MergeTimeout = 200 * time.Millisecond })
	byPath := map[string]mergeCase{}
	for _, tt := range mergeCases {
		byPath[tt.path] = tt
	}
	answer := func(body func(mergeCase) string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			text, code := body(byPath[r.URL.RequestURI()]), http.StatusOK
			if text == "" {
				text, code = notFoundBody, http.StatusNotFound
			}
			answerJSON(code, text)(rw, r)
		}
	}
	w.local.answer = answer(func(tt mergeCase) string { return tt.local })
	w.theirs.answer = func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Spinnaker-Origin") == "slow" {
			hang(rw, r)
			return
		}
		answer(func(tt mergeCase) string { return tt.theirs })(rw, r)
	}
	var group sync.WaitGroup
	for i := range 4 {
		for path, tt := range byPath {
			group.Go(func() {
				if i == 0 {
					w.send(t, http.MethodGet, path, "", "X-SPINNAKER-ORIGIN", "slow")
					return
				}
				want := tt.want
				if want == "" {
					want = notFoundBody
				}
				if response, body := w.send(t, http.MethodGet, path, ""); body != want && response.Header.Get(incompleteHeader) == "" &&
					response.StatusCode != http.StatusServiceUnavailable { // a busy machine can be slower than the timeout
					t.Errorf("%s: got %d %s, want %s", path, response.StatusCode, body, want)
				}
			})
		}
	}
	group.Wait()
	if used := w.handler.client.memory.Used(); used != 0 {
		t.Errorf("got %d bytes used, want 0", used)
	}
}
