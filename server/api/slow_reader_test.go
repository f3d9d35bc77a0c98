package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/versions"
)

// slowResponseWriter is the connection of a client that takes 20 seconds to read each event.
type slowResponseWriter struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (c *slowResponseWriter) SetWriteDeadline(t time.Time) error { c.deadline = t; return nil }

func (c *slowResponseWriter) Write(b []byte) (int, error) {
	done := time.Now().Add(20 * time.Second)
	if !c.deadline.IsZero() && c.deadline.Before(done) {
		time.Sleep(time.Until(c.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(time.Until(done))
	return len(b), nil
}

// pageStore is a store with one page of objects.
type pageStore struct{ api.Store }

func (pageStore) Accounts(context.Context) ([]registry.Account, error) {
	return []registry.Account{{Account: vedette.Account{Name: "prod"}}}, nil
}

func (pageStore) ChangedAccounts(uint64) versions.AccountChanges { return versions.AccountChanges{} }

func (pageStore) Feeds(context.Context, ...vedette.AccountName) ([]read.FeedStatus, error) {
	return nil, nil
}

func (pageStore) Objects(context.Context, read.Query) (read.Page, error) {
	var page read.Page
	for i := range 10 {
		page.Items = append(page.Items, read.Row{Account: "prod", Object: vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Name: fmt.Sprint(i)}, Body: []byte("{}")}})
	}
	return page, nil
}

type emptyFleet struct{}

func (emptyFleet) Agents(context.Context) ([]api.Agent, []vedette.ServerID)  { return nil, nil }
func (emptyFleet) AgentsOf(context.Context, vedette.AccountName) []api.Agent { return nil }

func (emptyFleet) Freshness(vedette.AccountName) (seen time.Time, connected bool) {
	return time.Time{}, true
}

func (emptyFleet) Completeness(vedette.AccountName) time.Time { return time.Time{} }

// TestSlowReaderReleasesPageMemory checks that a client that reads one event after another,
// each in time, cannot keep the memory of a whole page for an unlimited time.
func TestSlowReaderReleasesPageMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := readlimit.New(readlimit.Config{})
		handler := api.New(api.Config{Store: pageStore{}, Hub: ingest.NewHub(), Fleet: emptyFleet{}, ReadLimiter: reads})
		start := time.Now()
		w := &slowResponseWriter{ResponseRecorder: httptest.NewRecorder()}
		handler.ServeHTTP(w, httptest.NewRequestWithContext(tenMinuteContext(t), http.MethodGet, "/vedette/v1/changes?initial=true&include=body", nil))
		if elapsed := time.Since(start); elapsed != 30*time.Second {
			t.Errorf("duration: got %v", elapsed)
		}
		if free, _ := readtest.Exhaust(reads); free != 64<<20 {
			t.Errorf("free memory: got %d bytes, want all of it", free)
		}
	})
}

// tenMinuteContext bounds a request that would otherwise never end.
func tenMinuteContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
