package outbox

import "time"

// congestionWindow bounds how many bytes of snapshots are in flight. A live change waits
// behind all of them, so there should be just enough to keep the server busy. How much that
// is depends on the server, its database and the network. As in TCP Vegas, the round-trip
// time of acknowledgements shows it: while it is near its minimum, the window grows; if it
// is longer, bytes only wait in a queue, and the window shrinks.
type congestionWindow struct {
	limit    int           // bytes
	inflight int           // bytes
	minRTT   time.Duration // the shortest time from Take to Ack; 0 before the first
}

const (
	initialWindow = 1 << 20
	// minWindow keeps the fixed cost of a commit small compared to what it writes.
	minWindow = 512 << 10
	maxWindow = 16 << 20
	// maxQueueDelay is about how long a live change may wait for snapshots.
	maxQueueDelay = 40 * time.Millisecond
)

func newWindow() congestionWindow { return congestionWindow{limit: initialWindow} }

// full reports whether no more bytes of snapshots should be sent now.
func (p *congestionWindow) full() bool { return p.inflight >= p.limit }

func (p *congestionWindow) onSend(bytes int) { p.inflight += bytes }

// onAck adapts the window to an acknowledgement of bytes of snapshots. Rtt is the time since
// the last of them was taken.
func (p *congestionWindow) onAck(bytes int, rtt time.Duration) {
	p.inflight -= bytes
	if p.minRTT == 0 || rtt < p.minRTT {
		p.minRTT = rtt
	}
	if rtt <= p.minRTT+maxQueueDelay {
		p.limit = min(p.limit+bytes, maxWindow)
	} else {
		p.limit = max(p.limit-p.limit/8, minWindow)
	}
}
