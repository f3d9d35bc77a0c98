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
	"github.com/vedette-io/vedette/server/store"
)

// trickle is the connection of a reader that takes 20 seconds for whatever it is
// sent.
type trickle struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (c *trickle) SetWriteDeadline(t time.Time) error { c.deadline = t; return nil }

func (c *trickle) Write(b []byte) (int, error) {
	done := time.Now().Add(20 * time.Second)
	if !c.deadline.IsZero() && c.deadline.Before(done) {
		time.Sleep(time.Until(c.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(time.Until(done))
	return len(b), nil
}

// many is a store that holds a page of objects.
type many struct{ api.Reader }

func (many) Accounts(context.Context) ([]store.AccountRow, error) {
	return []store.AccountRow{{Account: vedette.Account{Name: "prod"}}}, nil
}

func (many) Feeds(context.Context, ...vedette.AccountName) ([]store.FeedStatus, error) {
	return nil, nil
}

func (many) Objects(context.Context, store.Query) (store.Page, error) {
	var page store.Page
	for i := range 10 {
		page.Items = append(page.Items, store.Row{Account: "prod", Object: vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Name: fmt.Sprint(i)}, Body: []byte("{}")}})
	}
	return page, nil
}

type nobody struct{}

func (nobody) Agents() []api.Agent                                       { return nil }
func (nobody) Freshness(vedette.AccountName) (seen time.Time, live bool) { return time.Time{}, true }

// TestReaderThatTrickles holds that a reader who takes an event after the other, each
// in good time, does not keep the memory of a whole page for as long as it likes.
func TestReaderThatTrickles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := readlimit.New(readlimit.Config{})
		handler := api.New(api.Config{Store: many{}, Hub: ingest.NewHub(), Fleet: nobody{}, Reads: reads})
		began := time.Now()
		w := &trickle{ResponseRecorder: httptest.NewRecorder()}
		handler.ServeHTTP(w, httptest.NewRequestWithContext(tenMinutes(t), http.MethodGet, "/vedette/v1/changes?initial=true&include=body", nil))
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it was served for %v", took)
		}
		if free, _ := readtest.Exhaust(reads); free != 64<<20 {
			t.Errorf("%d bytes are free: not all memory was given back", free)
		}
	})
}

// tenMinutes ends a request that would otherwise be served for ever.
func tenMinutes(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
