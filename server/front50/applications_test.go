package front50_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/front50"
)

// transport answers requests without a network.
type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestUnreachableFront50HidesNothing lets minutes pass in which Front50 is away, knows applications, and changes.
func TestUnreachableFront50HidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Value
		answer.Store("")
		client := front50.New(front50.Config{BaseURL: "http://front50", Transport: transport(func(r *http.Request) *http.Response {
			recorder := httptest.NewRecorder()
			if r.URL.String() != "http://front50/v2/applications?restricted=false" || answer.Load() == "" {
				recorder.Code = http.StatusBadGateway
			}
			fmt.Fprint(recorder, answer.Load())
			return recorder.Result()
		})})
		applications := front50.NewApplications(client, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- applications.Run(ctx) }()
		for _, step := range []struct {
			name, answer   string
			web, shop      bool
			versionChanges bool
		}{
			{"away from the start: everything is known", "", true, true, false},
			{"the first answer", `[{"name":"WEB"},{"name":"x"}]`, true, false, true},
			{"the same in another order", `[{"name":"x"},{"name":"Web"}]`, true, false, false},
			{"garbage", `{"web"`, true, false, false},
			{"away again", "", true, false, false},
			{"another application", `[{"name":"shop"},{"name":"x"}]`, false, true, true},
			{"none", `[]`, false, false, true},
		} {
			_, before := applications.Snapshot()
			answer.Store(step.answer)
			time.Sleep(time.Minute)
			synctest.Wait()
			known, version := applications.Snapshot()
			if known("web") != step.web || known("Shop") != step.shop || (version != before) != step.versionChanges {
				t.Errorf("%s: got web %v, shop %v, version %d after %d; want %v, %v, changed %v", step.name, known("web"), known("Shop"), version, before,
					step.web, step.shop, step.versionChanges)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("got %v, want no error at the end", err)
		}
	})
}
