package uplink

import (
	"context"
	"errors"
	"testing"
	"time"
)

// clockTest is an agent and its server, each with its own clock, and messages that take time.
type clockTest struct {
	t             *testing.T
	link          *link
	agent, server time.Duration // what the clocks show
}

func newClockTest(t *testing.T) *clockTest {
	c := &clockTest{t: t, agent: 7 * time.Hour}
	c.link = &link{clock: &serverClock{elapsed: func() time.Duration { return c.agent }}, done: make(chan struct{}), heartbeatInterval: 3 * time.Second}
	c.link.clock.began()
	c.pass(5 * time.Millisecond) // until Welcome is sent
	c.server = 0
	c.pass(5 * time.Millisecond) // until it has arrived
	return c
}

// pass lets time pass for both.
func (c *clockTest) pass(d time.Duration) { c.agent, c.server = c.agent+d, c.server+d }

// heartbeats exchanges heartbeats for some time. Each takes delay.
func (c *clockTest) heartbeats(d, delay time.Duration) {
	c.t.Helper()
	for end := c.server + d; c.server < end; c.pass(3*time.Second - 2*delay) {
		sent := c.agent.Milliseconds()
		c.pass(delay)
		read := c.server.Milliseconds()
		c.pass(delay)
		c.link.clock.answered(sent, read)
		if err := c.link.clock.received(read); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *clockTest) want(what string, d *Delivery, late, interrupted bool) {
	c.t.Helper()
	if err := d.Late(); (err != nil) != late {
		c.t.Errorf("%s: got late %v, want %v", what, err, late)
	}
	if err := d.Interrupted(); (err != nil) != interrupted {
		c.t.Errorf("%s: got interrupted %v, want %v", what, err, interrupted)
	}
}

// deliver returns the delivery of an operation that was sent at a stamp and arrives now.
func (c *clockTest) deliver(stamp, timeout time.Duration) *Delivery {
	return c.link.newDelivery(timeout, stamp.Milliseconds())
}

// TestDeadlineCountsFromTheServer checks that time in transit counts, whatever stood still.
func TestDeadlineCountsFromTheServer(t *testing.T) {
	c := newClockTest(t)
	c.heartbeats(time.Minute, 2*time.Millisecond)
	d := c.deliver(c.server, 2*time.Second)
	c.want("at once", d, false, false)
	c.pass(1900 * time.Millisecond)
	c.want("just before the deadline", d, false, false)
	c.pass(110 * time.Millisecond)
	c.want("after the deadline", d, true, false)
	if err := d.Late(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a context.DeadlineExceeded", err)
	}

	c = newClockTest(t)
	c.heartbeats(time.Minute, 2*time.Millisecond)
	sent := c.server
	c.pass(time.Minute) // the process is stopped, and continues
	c.want("read after a pause", c.deliver(sent, 2*time.Second), true, true)
	d = c.deliver(sent, 2*time.Minute)
	c.want("its connection may be lost meanwhile", d, false, true)
	if err := c.link.clock.received((sent + 3*time.Second).Milliseconds()); err != nil {
		t.Fatal(err)
	}
	c.want("a heartbeat that waited, too", d, false, true)
	if err := c.link.clock.received(c.server.Milliseconds()); err != nil {
		t.Fatal(err)
	}
	c.want("the connection works", d, false, false)
	close(c.link.done)
	c.want("the connection has ended", d, false, true)
}

// TestPauseWhileConnecting checks a process that is stopped between its Hello and the Welcome, which then
// is as late as the operation.
func TestPauseWhileConnecting(t *testing.T) {
	c := newClockTest(t)
	c.link.clock.began()
	c.server = 0
	c.pass(time.Minute)
	c.want("before the first heartbeat", c.deliver(time.Second, 30*time.Second), true, true)
	c.heartbeats(10*time.Second, time.Millisecond) // the server is as late as the agent believes
	c.want("later", c.deliver(c.server, 30*time.Second), false, false)
}

// TestSuspendedMachineNoticesThePause checks a machine whose clock stands still while it does.
func TestSuspendedMachineNoticesThePause(t *testing.T) {
	c := newClockTest(t)
	c.heartbeats(time.Minute, 2*time.Millisecond)
	before := c.deliver(c.server, 30*time.Second)
	c.server += 10 * time.Second
	c.want("nothing shows it yet", before, false, false)
	after := c.deliver(c.server, time.Hour)
	c.want("sent meanwhile, so it is later than possible", after, true, true)
	c.want("before", before, true, true)
	if err := c.link.clock.received(c.server.Milliseconds()); err == nil {
		t.Error("the next heartbeat: got no error, want the end of the connection")
	}
}

// TestClockDriftIsTolerated checks that clocks of different speed neither end the connection, nor let an operation be late, nor
// refuse one that is not.
func TestClockDriftIsTolerated(t *testing.T) {
	for _, drift := range []time.Duration{-1500 * time.Microsecond, 1500 * time.Microsecond} { // per heartbeat: half a thousandth
		c := newClockTest(t)
		for range 24 * 60 * 20 {
			c.heartbeats(time.Second, 20*time.Millisecond)
			c.agent += drift
		}
		d := c.deliver(c.server, 2*time.Second)
		c.want("at once", d, false, false)
		c.pass(1900 * time.Millisecond)
		c.want("before the deadline", d, false, false)
		c.pass(101 * time.Millisecond)
		c.want("after the deadline", d, true, false)
	}
}

// TestServerWithoutStamps checks operations of an older server: their deadline counts from their arrival.
func TestServerWithoutStamps(t *testing.T) {
	c := newClockTest(t)
	d := c.link.newDelivery(2*time.Second, 0)
	c.pass(1990 * time.Millisecond)
	if err := d.Late(); err != nil {
		t.Errorf("got %v before the deadline", err)
	}
	c.pass(10 * time.Millisecond)
	if d.Late() == nil {
		t.Error("got nil after the deadline")
	}
}

// TestNonsenseFromServers checks values that no server sends.
func TestNonsenseFromServers(t *testing.T) {
	c := newClockTest(t)
	c.heartbeats(10*time.Second, time.Millisecond)
	for _, n := range []int64{-1 << 63, -1, 0, 1 << 62} {
		c.link.clock.answered(n, -1<<63)
		c.link.clock.answered(c.agent.Milliseconds()+1, n)
	}
	c.want("after nonsense", c.deliver(c.server, 2*time.Second), false, false)
}
