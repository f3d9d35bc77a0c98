package api

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

func TestStatusFollowsConnectionAndFeeds(t *testing.T) {
	feeds := func(live, denied, failing int) map[vedette.FeedState]int {
		return map[vedette.FeedState]int{vedette.FeedLive: live, vedette.FeedDenied: denied, vedette.FeedFailing: failing}
	}
	for _, tt := range []struct {
		name    string
		state   accountState
		status  accountStatus
		problem vedette.ErrorKind
	}{
		{"all feeds are live", accountState{connected: true, feeds: feeds(12, 0, 0)}, statusReady, ""},
		{"no agent", accountState{stale: true, feeds: feeds(12, 0, 0)}, statusOrphaned, ""},
		{"no agent, and all feeds were denied", accountState{stale: true, feeds: feeds(0, 12, 0)}, statusOrphaned, vedette.Denied},
		{"all feeds are denied", accountState{connected: true, stale: true, feeds: feeds(0, 12, 0)}, statusDenied, ""},
		{"some feeds are denied", accountState{connected: true, feeds: feeds(11, 1, 0)}, statusPartial, ""},
		{"some feeds are denied, and one fails", accountState{connected: true, stale: true, feeds: feeds(10, 1, 1)}, statusStale, ""},
		{"the API server is down, after some feeds were denied", accountState{connected: true, stale: true, feeds: feeds(0, 1, 11)}, statusStale, ""},
		{"discovery is denied", accountState{connected: true, stale: true}, statusDenied, vedette.Denied},
		{"the only kind is misspelt", accountState{connected: true, stale: true}, statusMisconfigured, vedette.Invalid},
		{"one of several kinds is misspelt", accountState{connected: true, feeds: feeds(3, 0, 0)}, statusPartial, vedette.Invalid},
		{"nothing is known yet", accountState{connected: true, stale: true}, statusStale, ""},
		{"the agent is late", accountState{connected: true, stale: true, feeds: feeds(12, 0, 0)}, statusStale, ""},
		{"all feeds are live, and discovery fails", accountState{connected: true, feeds: feeds(12, 0, 0)}, statusPartial, vedette.Unavailable},
		{"all feeds are live, and the account waits for another list", accountState{connected: true, feeds: feeds(12, 0, 0)}, statusReady, vedette.Waiting},
	} {
		tt.state.problem = tt.problem
		if got := tt.state.status(); got != tt.status {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.status)
		}
	}
}

func TestDeniedTextNamesSomeFeeds(t *testing.T) {
	var feeds []read.FeedStatus
	add := func(state vedette.FeedState, message string, names ...string) {
		for _, name := range names {
			feeds = append(feeds, read.FeedStatus{Feed: vedette.Feed{Kind: vedette.Kind{Name: name}}, State: state, Message: message})
		}
	}
	add(vedette.FeedLive, "", "Node")
	if got := deniedText(feeds); got != "" {
		t.Errorf("without denied feeds: got %q", got)
	}
	add(vedette.FeedDenied, "RBAC says no", "Pod", "Job")
	if got, want := deniedText(feeds), "the cluster denies 2 of 3 feeds (Job, Pod): RBAC says no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	add(vedette.FeedDenied, "x", strings.Split("abcdefgh", "")...)
	if got, want := deniedText(feeds), "the cluster denies 10 of 11 feeds (Job, Pod, a, b, c, and 5 more): RBAC says no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
