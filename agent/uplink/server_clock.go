package uplink

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// serverClock tells how late the clock of the server can be by now. It knows the server's time as
// stamps, which count from Welcome. No clock is compared with another:
//
//   - When the agent sent its Hello, the server had not sent its Welcome, so the stamp was 0 at most.
//   - The server returns the agent's heartbeats with the stamp at which it had read them. When the agent
//     sent one, the stamp was that at most.
//   - From then on the agent measures by its own clock, which goes on while the process is stopped and
//     while the machine is suspended. Two clocks may differ by a thousandth in speed.
//
// So the result is never early, and as much too late as a heartbeat took to the server. A stamp that
// arrives and is later than that shows that the agent's clock stood still, for example because
// somebody stopped a virtual machine. Then nothing is known any more, until the next connection.
type serverClock struct {
	elapsed func() time.Duration // since the agent began to connect

	mu      sync.Mutex
	stamp   time.Duration // when elapsed was at, the stamp was this at most
	at      time.Duration
	newest  time.Duration // the newest stamp that was received
	stopped error         // the agent's clock stood still
}

func newServerClock() *serverClock { return &serverClock{elapsed: stopwatch()} }

// stopwatch returns a function that returns the time since now, including the time in which the
// machine is suspended.
func stopwatch() func() time.Duration {
	start, suspendedBefore := time.Now(), suspended()
	return func() time.Duration { return time.Since(start) + suspended() - suspendedBefore }
}

const (
	// stampPrecision is by how much a stamp may be too low, because it is cut to milliseconds.
	stampPrecision = time.Millisecond
	// maxClockError is by how much the agent's clock may be behind without an alarm.
	maxClockError = 100 * time.Millisecond
)

// began notes that the server cannot have sent its Welcome yet.
func (c *serverClock) began() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stamp, c.at = 0, c.elapsed()
}

// latest returns the latest stamp that the server can have reached.
func (c *serverClock) latest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latestLocked(c.elapsed())
}

func (c *serverClock) latestLocked(now time.Duration) time.Duration {
	passed := now - c.at
	return c.stamp + passed + passed/1000
}

// received notes a stamp that the server has sent. It fails if the agent's clock stood still.
func (c *serverClock) received(millis int64) error {
	stamp := boundedMillis(millis)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	if behind := stamp - c.latestLocked(now); c.stopped == nil && behind > maxClockError {
		c.stopped = vedette.Errorf(vedette.Unavailable, "the clock of this machine stood still for at least %v", behind.Round(time.Millisecond))
	} else if behind > 0 {
		c.stamp, c.at = stamp, now
	}
	c.newest = max(c.newest, stamp)
	return c.stopped
}

// answered notes that the server had read a heartbeat of the agent, which was sent at a time of this
// clock, when its stamp was read.
func (c *serverClock) answered(sentMillis, readMillis int64) {
	sent, read := boundedMillis(sentMillis), boundedMillis(readMillis)+stampPrecision
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	if sent <= 0 || sent > now {
		return // an older server, or nonsense
	}
	if passed := now - sent; read+passed+passed/1000 < c.latestLocked(now) {
		c.stamp, c.at = read, sent
	}
}

// silentFor returns for how long the server may have sent nothing that has arrived, and why the clock
// is wrong, or nil.
func (c *serverClock) silentFor() (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latestLocked(c.elapsed()) - c.newest, c.stopped
}

// boundedMillis returns a duration from a server, which may send any value.
func boundedMillis(n int64) time.Duration {
	const limit = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(max(0, min(n, limit))) * time.Millisecond
}
