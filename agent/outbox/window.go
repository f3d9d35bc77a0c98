package outbox

import "time"

// congestionWindow decides how many bytes of snapshots may be on the way at once. A live
// change that is sent waits behind all of them, so there should be just enough
// to keep the server busy. How much that is depends on the server, its database
// and the network; it shows in how long acknowledgements take. While they come
// nearly as fast as the fastest came, more is sent; when they take longer, what
// is on the way only stands in a queue, and less is sent.
type congestionWindow struct {
	limit    int           // bytes
	inflight int           // bytes
	minRTT   time.Duration // the shortest time between taking and acknowledging; 0 before the first
}

const (
	initialWindow = 1 << 20
	// minWindow keeps a commit's own cost small beside what it writes.
	minWindow = 512 << 10
	maxWindow = 16 << 20
	// maxQueueDelay is what a live change may have to wait for snapshots, about.
	maxQueueDelay = 40 * time.Millisecond
)

func newWindow() congestionWindow { return congestionWindow{limit: initialWindow} }

// full reports whether nothing more of a snapshot should be sent now.
func (p *congestionWindow) full() bool { return p.inflight >= p.limit }

func (p *congestionWindow) onSend(bytes int) { p.inflight += bytes }

// onAck notes an acknowledgement of so many bytes of snapshots, the last of
// which were taken so long ago.
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
