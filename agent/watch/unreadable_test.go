package watch_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// TestTooLargeDeletionRemovesObject deletes an object in an event of 17 MiB.
func TestTooLargeDeletionRemovesObject(t *testing.T) {
	const item = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":"a","resourceVersion":"4"}`
	var gone atomic.Bool
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !r.URL.Query().Has("watch") && gone.Load():
			fmt.Fprint(w, strings.ReplaceAll(emptyList, `"5"`, `"8"`))
		case !r.URL.Query().Has("watch"):
			fmt.Fprint(w, strings.ReplaceAll(emptyList, `[]`, `[`+item+`}]`))
		case r.URL.Query().Get("resourceVersion") == "5":
			gone.Store(true)
			fmt.Fprint(w, `{"type":"DELETED","object":`+item+`,"data":{"x":"`)
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader(strings.Repeat("x", 17<<20)), 17<<20))
			kubetest.Hang(w, r, `"}}}`+"\n")
		default:
			kubetest.Hang(w, r, "")
		}
	})
	r := newRecorder()
	cfg := watch.Config{Log: slog.New(slog.DiscardHandler)}
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, r, cfg, nil)
	r.await(t, "the object to appear", func() bool { return r.has(configMapFeed, "n/a") })
	r.await(t, "the object to disappear", func() bool { return r.state(configMapFeed) == vedette.FeedLive && !r.has(configMapFeed, "n/a") })
}

// unreadableDeletes is a sink that cannot read deletions.
type unreadableDeletes struct{ *recorder }

// Put rejects deletions with ErrUnreadable.
func (s unreadableDeletes) Put(ctx context.Context, e watch.Event) error {
	if e.Type == watch.Delete {
		return watch.ErrUnreadable
	}
	return s.recorder.Put(ctx, e)
}

// TestRepeatedListsBackOff checks that a feed that must list again after each list backs
// off: after unreadable deletions, and with an API server that knows no mark.
func TestRepeatedListsBackOff(t *testing.T) {
	for name, answer := range map[string]string{
		"unreadable deletion": `{"type":"DELETED","object":{"metadata":{"resourceVersion":"6"}}}`,
		"410 forever":         `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			lists := make(chan struct{}, 1000)
			server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("watch") {
					fmt.Fprintln(w, answer)
					return
				}
				lists <- struct{}{}
				fmt.Fprint(w, emptyList)
			})
			r := newRecorder()
			cfg := watch.Config{MinBackoff: time.Hour, MaxBackoff: time.Hour, Log: slog.New(slog.DiscardHandler)}
			_, stop := start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap"}}, unreadableDeletes{r}, cfg, nil)
			<-lists
			<-lists // the second comes at once
			r.await(t, "the feed to wait", func() bool {
				f := r.feeds[configMapFeed]
				return f.snapshots == 2 && f.state == vedette.FeedSyncing && f.message != ""
			})
			stop()
			if n := len(lists); n != 0 {
				t.Errorf("got %d more lists, want none", n)
			}
		})
	}
}
