package watch

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// newTestFeed returns a feed that is watched from a mark.
func newTestFeed(v *verifier, kind vedette.Kind, mark vedette.Mark) *feed {
	f := v.w.newFeed(FeedSpec{Feed: vedette.Feed{Kind: kind}}, discardSink{}, mark)
	f.step(lifecycle.Started{})
	v.add(f)
	return f
}

// TestRestoreIsSuspectedAtTheStart checks that feeds which resume from stored marks are checked for a restore of etcd
// soon, because it may have happened while nobody watched.
func TestRestoreIsSuspectedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatcher(nil, Selection{}, discardSink{}, Config{Comparer: noComparer{}})
		newTestFeed(w.verifier, vedette.Kind{Name: "ConfigMap"}, "7")
		ahead := newTestFeed(w.verifier, vedette.Kind{Name: "Pod"}, "10")
		newTestFeed(w.verifier, vedette.Kind{Name: "Service"}, "9")
		newTestFeed(w.verifier, vedette.Kind{Group: "example.org", Name: "Widget"}, "not a number")
		time.Sleep(restoreCheckInterval)
		if got := w.verifier.nextRestoreSuspects(time.Now()); !slices.Equal(got, []*feed{ahead}) {
			t.Errorf("got %d feeds to check, want that of the highest mark", len(got))
		}
		if got := w.verifier.nextRestoreSuspects(time.Now()); len(got) > 0 {
			t.Errorf("got %d feeds to check again, want none", len(got))
		}
		w = NewWatcher(nil, Selection{}, discardSink{}, Config{Comparer: noComparer{}})
		newTestFeed(w.verifier, vedette.Kind{Name: "ConfigMap"}, "")
		time.Sleep(restoreCheckInterval)
		if got := w.verifier.nextRestoreSuspects(time.Now()); len(got) > 0 {
			t.Errorf("got %d feeds to check although they were read just now, want none", len(got))
		}
	})
}

// TestRestoreOfOneOfSeveralEtcds checks that a feed of events, or of an aggregated API server, whose versions are far
// ahead, does not hide that the main etcd was restored.
func TestRestoreOfOneOfSeveralEtcds(t *testing.T) {
	for _, kind := range []vedette.Kind{{Name: "Event"}, {Group: "example.org", Name: "Widget"}} {
		w := NewWatcher(nil, Selection{}, discardSink{}, Config{Comparer: noComparer{}})
		newTestFeed(w.verifier, vedette.Kind{Name: "ConfigMap"}, "7")
		core := newTestFeed(w.verifier, vedette.Kind{Name: "Pod"}, "10")
		ahead := newTestFeed(w.verifier, kind, "1000")
		if got := w.verifier.nextRestoreSuspects(time.Now().Add(restoreCheckInterval)); !slices.Equal(got, []*feed{ahead, core}) {
			t.Errorf("%s: got %d feeds to check, want the one that is ahead, and one of the main etcd", kind, len(got))
		}
	}
}

// TestOverdueFeedsAreLogged checks that verifications which fail all the time are not only seen at level debug, and
// that one line stands for all feeds of an account.
func TestOverdueFeedsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))
		w := NewWatcher(newTestCluster(t), Selection{}, discardSink{}, Config{Comparer: noComparer{}, Log: log})
		v := w.verifier
		for _, name := range []string{"ConfigMap", "Pod"} {
			newTestFeed(v, vedette.Kind{Name: name}, "7")
		}
		failAll := func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			for f, turn := range v.turns {
				v.logFailureLocked(f, turn, errors.New("the server verifies other accounts"))
			}
		}
		for _, wait := range []time.Duration{time.Minute, 2 * time.Hour, time.Hour, time.Minute} {
			time.Sleep(wait)
			failAll()
		}
		if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "the server verifies other accounts") {
			t.Errorf("got the lines\n%s\nwant one after three hours", got)
		}
		time.Sleep(time.Hour)
		failAll()
		if got := text.String(); strings.Count(got, "\n") != 2 {
			t.Errorf("got the lines\n%s\nwant one more after an hour", got)
		}
	})
}

// newTestCluster returns a cluster that is not reached.
func newTestCluster(t *testing.T) *kube.Cluster {
	c, err := kube.Connect(kube.Access{KubeconfigContents: kubetest.Kubeconfig("https://127.0.0.1:1", nil)}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

type noComparer struct{ Comparer }
