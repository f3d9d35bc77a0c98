// Package coherence keeps the caches of servers that share a database as true as those of a server that uses it alone
// (docs/decisions/0185). Each server tells the others, in order, what its commits have changed.
//
// Guarantees:
//
//   - A server that is current has taken in whatever the other servers had made known to all (Publisher.Flush) before it was asked.
//   - A server that does not hear another one that is alive is not current. It reads the database instead of its caches.
//   - Nobody waits for a server that is frozen, or cut off, for longer than Validity: it is not current any more then.
//
// Less formally, a server asks each other one twice a second for a sign (Ping), and the answer (Pong) comes after all that
// was published before. Whoever has an answer knows that it was current when it asked, and takes that for true for two seconds from
// then on. The other one knows when it was asked, so it knows when a server that does not confirm a change stops to use its caches.
// Only durations are compared, each by one clock.
package coherence

import "time"

const (
	// Validity is how long a server is current after it has asked, by its own clock.
	Validity = 2 * time.Second
	// PingInterval is how often a server asks.
	PingInterval = Validity / 4
	// margin is how much the clocks of two servers may differ in how fast they run, in Validity.
	margin = Validity / 10
)

// elapsed returns the time since t, by the clock that has run faster: the monotonic one stands still while a machine is suspended, and
// the other one may be set.
func elapsed(t, now time.Time) time.Duration {
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)).Abs())
}
