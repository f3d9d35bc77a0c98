package watch

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// yieldingSink lets a snapshot yield while the sink takes its end, and records the events until the feed is live.
type yieldingSink struct {
	feed   *feed
	yield  func()
	events []EventType
	live   context.CancelFunc
}

func (s *yieldingSink) Put(_ context.Context, e Event) error {
	if e.Type != Status {
		s.events = append(s.events, e.Type)
	}
	switch {
	case e.Type == Begin:
		s.yield = s.feed.permit.yield
	case e.Type == End:
		s.yield()
	case e.State == vedette.FeedLive:
		s.live()
	}
	return nil
}

// TestCompleteSnapshotDoesNotYield lets a snapshot yield to other accounts when the sink has it. It must not be read again: its objects would
// come outside of a snapshot.
func TestCompleteSnapshotDoesNotYield(t *testing.T) {
	server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			kubetest.Hang(w, r, "")
			return
		}
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},`+
			`"items":[{"metadata":{"namespace":"n","name":"a","resourceVersion":"4"}}]}`)
	})
	w := NewWatcher(kubetest.Connect(t, server, kube.Options{}), Selection{}, discardSink{}, Config{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sink := &yieldingSink{live: cancel}
	kind := vedette.Kind{Name: "ConfigMap"}
	resource := vedette.Resource{Kind: kind, Version: "v1", Plural: "configmaps"}
	sink.feed = w.newFeed(FeedSpec{Feed: vedette.Feed{Kind: kind}, Resource: resource}, sink, "")
	sink.feed.run(ctx)
	if want := []EventType{Begin, Item, End}; !slices.Equal(sink.events, want) {
		t.Errorf("got the events %v, want %v", sink.events, want)
	}
}
