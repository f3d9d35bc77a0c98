package store

import "github.com/vedette-io/vedette"

// isNotable reports whether an update changes what readers of a feed's state see: they know
// already that a feed is live and has no message. Marks and numbers of objects change with every
// commit and do not count.
func (u FeedUpdate) isNotable(wasLive bool) bool {
	return u.Note != nil || u.State != "" && (u.State != vedette.FeedLive || u.Message != "" || !wasLive)
}

// changesState reports whether a plan changes the state or the message of a feed. The account log
// has such changes.
func (p *plan) changesState() bool {
	for key, u := range p.feeds {
		if u.isNotable(p.baseline.live[key]) {
			return true
		}
	}
	return false
}
