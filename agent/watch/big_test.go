package watch_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/watch"
)

// TestBigObjectsTakeTurns has clusters send the beginning of an object of three
// megabytes and then, now and then, a byte of it, which is no silence. They take all
// turns that there are for big objects. A healthy cluster's big object is read all
// the same.
func TestBigObjectsTakeTurns(t *testing.T) {
	const head = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":"a","resourceVersion":"6"},"data":{"x":"`
	big := strings.Repeat("x", 3<<20)
	cluster := func(limit time.Duration, then func(http.ResponseWriter, *http.Request)) *recorder {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !r.URL.Query().Has("watch") {
				fmt.Fprint(w, emptyList)
				return
			}
			fmt.Fprint(w, `{"type":"MODIFIED","object":`+head+big)
			then(w, r)
		})
		r := newRecorder()
		cfg := watch.Config{Shared: shared, BigObject: limit, FirstRetry: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
		start(t, connectTo(t, server), watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
		return r
	}
	for range 4 {
		r := cluster(50*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, "x")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(5 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		})
		r.await(t, "a big object to be given up", func() bool {
			f := r.feeds[configMapFeed]
			return f != nil && strings.Contains(f.message, "a big object did not end after 50ms")
		})
	}
	r := cluster(time.Minute, func(w http.ResponseWriter, r *http.Request) { hang(w, r, `"}}}`+"\n") })
	r.await(t, "the big object of the healthy cluster", func() bool { return r.has(configMapFeed, "n/a") })
}

var shared = watch.NewShared(0)
