package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// accountStatus is the state of an account as a whole. The values are part of the API. docs/decisions/0094 says how they exclude each
// other.
type accountStatus string

const (
	statusReady         accountStatus = "Ready"         // everything that the configuration selects is up to date
	statusPartial       accountStatus = "Partial"       // what is cached is up to date, but a part cannot be cached
	statusStale         accountStatus = "Stale"         // the data may be behind the cluster
	statusDenied        accountStatus = "Denied"        // the cluster denies everything
	statusMisconfigured accountStatus = "Misconfigured" // the configuration selects nothing that the cluster has
	statusOrphaned      accountStatus = "Orphaned"      // no connected agent reports the account
)

// feedStale is how accounts count a live feed whose agent is not connected, or late. The feed
// itself stays live, because the agent has said nothing else.
const feedStale vedette.FeedState = "stale"

// accountState is what decides the status of an account.
type accountState struct {
	connected, stale bool
	feeds            map[vedette.FeedState]int // as the agent reported them
	problem          vedette.ErrorKind         // of the agent's account error
}

// status returns the status. Denied and misconfigured accounts are not called stale, although
// they are, because waiting does not help them.
func (s accountState) status() accountStatus {
	total := 0
	for _, n := range s.feeds {
		total += n
	}
	live, denied := s.feeds[vedette.FeedLive], s.feeds[vedette.FeedDenied]
	switch {
	case !s.connected:
		return statusOrphaned
	case live == 0 && s.problem == vedette.Invalid:
		return statusMisconfigured
	case live == 0 && (s.problem == vedette.Denied || denied > 0 && denied == total):
		return statusDenied
	case s.stale:
		return statusStale
	case denied > 0 || s.problem == vedette.Invalid || s.problem == vedette.Denied || s.problem == vedette.Unavailable:
		return statusPartial
	}
	return statusReady
}

// maxNamedFeeds is how many denied feeds a message names.
const maxNamedFeeds = 5

// deniedText says which feeds the cluster denies, and why it denies the first. It returns ""
// if there are none.
func deniedText(feeds []read.FeedStatus) string {
	var names []string
	reason := ""
	for _, f := range feeds {
		if f.State != vedette.FeedDenied {
			continue
		}
		if len(names) == 0 {
			reason = f.Message
		}
		names = append(names, f.Feed.String())
	}
	if len(names) == 0 {
		return ""
	}
	count := len(names)
	slices.Sort(names)
	if count > maxNamedFeeds {
		names = append(names[:maxNamedFeeds], fmt.Sprintf("and %d more", count-maxNamedFeeds))
	}
	text := fmt.Sprintf("the cluster denies %d of %d feeds (%s)", count, len(feeds), strings.Join(names, ", "))
	if reason != "" {
		text += ": " + reason
	}
	return text
}
