package ingest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
)

func hubChange(n int) commit.Change {
	return commit.Change{Account: "prod", Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "shop", Name: fmt.Sprint("web-", n)}, Type: commit.Added}
}

func acceptAll(commit.Change) bool { return true }

// TestPublishDoesNotRunFilters publishes while a subscriber's filter does not return. Neither ingest nor
// another subscriber may notice.
func TestPublishDoesNotRunFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, release := NewHub(), make(chan struct{})
		stuck := hub.Subscribe(func(commit.Change) bool { <-release; return true })
		honest := hub.Subscribe(acceptAll)
		published := make(chan struct{})
		go func() {
			defer close(published)
			for n := range 3 {
				hub.Publish([]commit.Change{hubChange(n)})
			}
		}()
		synctest.Wait()
		select {
		case <-published:
		default:
			t.Error("Publish waits for a subscriber's filter")
		}
		for n := range 3 {
			select {
			case c := <-honest.Changes():
				if c.Key.Name != fmt.Sprint("web-", n) {
					t.Errorf("change %d: got %s", n, c.Key.Name)
				}
			default:
				t.Errorf("change %d did not reach another subscriber", n)
			}
		}
		close(release)
		synctest.Wait()
		if n := len(stuck.Changes()); n != 3 {
			t.Errorf("the slow subscriber got %d changes, want 3", n)
		}
		stuck.Close()
		honest.Close()
		<-published
	})
}

// TestSubscribersThatFallBehindAreEnded checks both ways to fall behind: a subscriber that does not read
// what it wants, and one whose filter takes longer than changes arrive. Neither holds memory without limit.
func TestSubscribersThatFallBehindAreEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, release := NewHub(), make(chan struct{})
		unread := hub.Subscribe(acceptAll)
		idle := hub.Subscribe(func(commit.Change) bool { return false })
		stuck := hub.Subscribe(func(commit.Change) bool { <-release; return false })
		batch := make([]commit.Change, 500)
		for i := range batch {
			batch[i] = hubChange(i)
			batch[i].Key.Name = strings.Repeat("x", 250)
		}
		for range 200 { // 100,000 changes
			hub.Publish(batch)
			synctest.Wait()
			if hub.log.bytes > maxLogBytes {
				t.Fatalf("got %d bytes of changes, want at most %d", hub.log.bytes, maxLogBytes)
			}
		}
		close(release)
		synctest.Wait()
		for name, s := range map[string]*Subscription{"a subscriber that does not read": unread, "one with a slow filter": stuck} {
			for range s.Changes() { // until it is closed
			}
			if !s.Lagged() {
				t.Errorf("%s was not told that it lost changes", name)
			}
		}
		if idle.Lagged() {
			t.Error("a subscriber that wants none of the changes lost some")
		}
		for _, s := range []*Subscription{unread, idle, stuck} {
			s.Close()
			s.Close()
		}
		hub.Publish(batch)
		if hub.log.bytes != 0 {
			t.Errorf("got %d bytes of changes without subscribers, want 0", hub.log.bytes)
		}
	})
}

// TestSubscriptionsBeginAtTheirStart checks that a subscriber gets what is published after it subscribed,
// once and in order, and nothing from before.
func TestSubscriptionsBeginAtTheirStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		first := hub.Subscribe(acceptAll)
		hub.Publish([]commit.Change{hubChange(0), hubChange(1)})
		second := hub.Subscribe(acceptAll)
		hub.Publish(nil)
		hub.Publish([]commit.Change{hubChange(2)})
		synctest.Wait()
		for name, tt := range map[string]struct {
			s    *Subscription
			want string
		}{"first": {first, "web-0 web-1 web-2"}, "second": {second, "web-2"}} {
			tt.s.Close()
			var got []string
			for c := range tt.s.Changes() {
				got = append(got, c.Key.Name)
			}
			if strings.Join(got, " ") != tt.want || tt.s.Lagged() {
				t.Errorf("%s: got %v, want %s", name, got, tt.want)
			}
		}
	})
}
