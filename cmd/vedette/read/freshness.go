package read

import (
	"fmt"
	"time"

	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/tables"
)

// noticesHint says where all notices are that a command does not print.
const noticesHint = "see `vedette accounts` and `vedette feeds`"

// warnStale prints a line for each cluster whose objects may be out of date, once.
func (g *getter) warnStale(fresh client.Freshness) {
	listed := false
	for _, f := range fresh.Feeds {
		text := staleWarning(f)
		if text == "" {
			continue
		}
		// The kinds of an account mostly have the same reason: its agent is not connected.
		// The key omits the lag, because it differs slightly between kinds.
		key := f.Account + " " + f.State + " " + f.Message
		listed = g.notices.Add(key, text) || listed
	}
	if listed { // otherwise those that are not listed were counted before
		g.notices.AddMore(fresh.Unlisted)
	}
}

// staleWarning returns nothing for kinds that an account does not cache, because these are read from its cluster.
func staleWarning(f client.FeedFreshness) string {
	switch {
	case f.State == "absent", !f.Stale:
		return ""
	case f.State == "live":
		return fmt.Sprintf("%s: %s", f.Account, lastContact(f))
	case f.Message == "":
		return fmt.Sprintf("%s: %s is %s; %s", f.Account, feedName(f), f.State, lastContact(f))
	default:
		return fmt.Sprintf("%s: %s is %s (%s); %s", f.Account, feedName(f), f.State, f.Message, lastContact(f))
	}
}

func feedName(f client.FeedFreshness) string {
	if f.Namespace == "" {
		return f.Kind
	}
	return f.Kind + " in " + f.Namespace
}

func lastContact(f client.FeedFreshness) string {
	if f.LagMs == nil {
		return "no report yet"
	}
	return "last report " + tables.Age(time.Duration(*f.LagMs)*time.Millisecond) + " ago"
}
