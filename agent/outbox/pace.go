package outbox

import "time"

// pace decides how many bytes of snapshots may be on the way at once. A live
// change that is sent waits behind all of them, so there should be just enough
// to keep the server busy. How much that is depends on the server, its database
// and the network; it shows in how long acknowledgements take. While they come
// nearly as fast as the fastest came, more is sent; when they take longer, what
// is on the way only stands in a queue, and less is sent.
type pace struct {
	limit   int           // bytes
	onWay   int           // bytes
	fastest time.Duration // the shortest time between taking and acknowledging; 0 before the first
}

const (
	firstPace = 1 << 20
	// leastPace keeps a commit's own cost small beside what it writes.
	leastPace = 512 << 10
	mostPace  = 16 << 20
	// patience is what a live change may have to wait for snapshots, about.
	patience = 40 * time.Millisecond
)

func newPace() pace { return pace{limit: firstPace} }

// full reports whether nothing more of a snapshot should be sent now.
func (p *pace) full() bool { return p.onWay >= p.limit }

func (p *pace) taken(bytes int) { p.onWay += bytes }

// acked notes an acknowledgement of so many bytes of snapshots, the last of
// which were taken so long ago.
func (p *pace) acked(bytes int, took time.Duration) {
	p.onWay -= bytes
	if p.fastest == 0 || took < p.fastest {
		p.fastest = took
	}
	if took <= p.fastest+patience {
		p.limit = min(p.limit+bytes, mostPace)
	} else {
		p.limit = max(p.limit-p.limit/8, leastPace)
	}
}
