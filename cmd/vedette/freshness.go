package main

import (
	"fmt"
	"time"

	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/views"
)

// maxWarnings limits the lines about freshness, because a fleet that has lost its network
// would cause thousands.
const maxWarnings = 10

// warnStale prints a line for each cluster whose objects may be out of date, once.
func (g *getter) warnStale(fresh client.Freshness) {
	more := 0
	for _, f := range fresh.Feeds {
		text := staleWarning(f)
		// The kinds of an account mostly have the same reason: its agent is not connected.
		// The key omits the lag, because it differs slightly between kinds.
		key := f.Account + " " + f.State + " " + f.Message
		if text == "" || g.warned[key] {
			continue
		}
		g.warned[key] = true
		if len(g.warned) > maxWarnings {
			more++
			continue
		}
		fmt.Fprintln(g.errOut, output.Sanitize(text))
	}
	if more > 0 { // there are more reasons than feeds with the same ones
		fmt.Fprintf(g.errOut, "and %d more: see `vedette accounts` and `vedette feeds`\n", more+fresh.Unlisted)
	}
}

func staleWarning(f client.FeedFreshness) string {
	switch {
	case f.State == "absent":
		return fmt.Sprintf("%s: does not cache %s", f.Account, f.Kind)
	case !f.Stale:
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
	return "last report " + views.Age(time.Duration(*f.LagMs)*time.Millisecond) + " ago"
}
