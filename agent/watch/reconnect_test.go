package watch_test

import (
	"fmt"
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

// TestLostConnectionDoesNotInterruptLists checks that a list of Secrets completes although
// the watch of another kind repeatedly loses its connection.
func TestLostConnectionDoesNotInterruptLists(t *testing.T) {
	var watches, recoveries atomic.Int64
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		secrets := strings.HasSuffix(r.URL.Path, "/secrets")
		switch {
		case secrets && r.URL.Query().Has("watch"):
			kubetest.Hang(w, r, "")
		case secrets:
			fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[`)
			_ = http.NewResponseController(w).Flush()
			for from := recoveries.Load(); recoveries.Load() < from+2 && r.Context().Err() == nil; { // until the other watch was lost and came back
				time.Sleep(10 * time.Millisecond)
			}
			fmt.Fprint(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"n","name":"s","resourceVersion":"4"}}]}`)
		case !r.URL.Query().Has("watch"):
			fmt.Fprint(w, emptyList)
		case watches.Add(1)%2 == 1:
			<-r.Context().Done() // without the head of an answer
		default:
			recoveries.Add(1)
			fmt.Fprint(w, changeOfA)
		}
	})
	r := newRecorder()
	cfg := watch.Config{IdleTimeout: 3 * time.Second, MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	start(t, kubetest.Connect(t, server, kube.Options{}), watch.Selection{Kinds: []string{"configmap", "secret"}}, r, cfg, nil)
	secretFeed := vedette.Feed{Kind: vedette.Kind{Name: "Secret"}}
	r.await(t, "the Secrets", func() bool { return r.feeds[secretFeed] != nil && r.feeds[secretFeed].state == vedette.FeedLive })
}
