package coherence

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/versions"
)

// Entry is something that the other servers are told. One of its fields is set.
type Entry struct {
	Effect  *versions.Message
	Changes []commit.Change // for readers of live events
}

// size returns about how much memory an entry takes, in bytes.
func (e *Entry) size() int {
	size := 256
	if e.Effect != nil {
		size += len(e.Effect.Applications) + len(e.Effect.Namespaces)
		for _, c := range e.Effect.Changed {
			size += 80 + len(c.Namespace) + len(c.Name) + len(c.Application)
		}
	}
	for _, c := range e.Changes {
		size += 120 + len(c.Key.Namespace) + len(c.Key.Name) + len(c.Version)
	}
	return size
}

// sizedEntry has the size of an entry, because others wait while the log is locked.
type sizedEntry struct {
	Entry

	size int
}

// maxLogBytes bounds the entries that wait for the slowest server. One that has more to read must begin again.
const maxLogBytes = 32 << 20

// Publisher tells the other servers what this one has changed. Its methods may be called concurrently.
type Publisher struct {
	started time.Time

	mu      sync.Mutex
	entries []sizedEntry
	first   uint64 // position of the first entry
	bytes   int
	readers map[*Reader]struct{} // also those that have left, until they are not current any more
	changed chan struct{}        // closed and replaced when there is an entry, a confirmation or a ping
}

// NewPublisher returns a publisher without readers.
func NewPublisher() *Publisher {
	return &Publisher{started: time.Now(), first: 1, readers: map[*Reader]struct{}{}, changed: make(chan struct{})}
}

func (p *Publisher) nextLocked() uint64 { return p.first + uint64(len(p.entries)) }

func (p *Publisher) notifyLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Publish adds an entry. It does not wait.
func (p *Publisher) Publish(e Entry) {
	size := e.size()
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Effect == nil && !p.wantsChangesLocked() {
		return
	}
	p.entries = append(p.entries, sizedEntry{e, size})
	p.bytes += size
	p.trimLocked()
	p.notifyLocked()
}

// trimLocked drops entries that all readers have, and the oldest if there are too many.
func (p *Publisher) trimLocked() {
	needed := p.nextLocked()
	for r := range p.readers {
		if !r.hasLeft {
			needed = min(needed, r.next)
		}
	}
	n := 0
	for n < len(p.entries) && (p.first+uint64(n) < needed || p.bytes > maxLogBytes) {
		p.bytes -= p.entries[n].size
		p.entries[n] = sizedEntry{}
		n++
	}
	p.entries = p.entries[n:]
	p.first += uint64(n)
}

func (p *Publisher) wantsChangesLocked() bool {
	for r := range p.readers {
		if r.wantsChanges && !r.hasLeft {
			return true
		}
	}
	return false
}

// Flush waits until all servers that are current know what was published before. Those that start meanwhile read the database. A server
// that has just started waits, because the others may not have seen it yet.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	target := p.nextLocked()
	waits := map[*Reader]time.Time{} // when each was heard last
	for r := range p.readers {
		if r.confirmed < target {
			waits[r] = r.heard
		}
	}
	p.mu.Unlock()
	for {
		now := time.Now()
		p.mu.Lock()
		changed, left := p.changed, p.youthLocked(now)
		for r, heard := range waits {
			remaining := Validity + margin - elapsed(heard, now)
			if r.confirmed >= target || remaining <= 0 {
				delete(waits, r)
				continue
			}
			left = max(left, remaining)
		}
		p.mu.Unlock()
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// youthLocked returns for how long there may be servers that do not know this one.
func (p *Publisher) youthLocked(now time.Time) time.Duration {
	return max(0, Validity+margin-elapsed(p.started, now))
}

// Reader is another server, as long as it is connected. Its methods may be called concurrently, but Next by one goroutine only.
type Reader struct {
	publisher *Publisher

	// Guarded by the publisher's mutex:
	next         uint64    // the position of the first entry that it was not given
	confirmed    uint64    // it knows what comes before
	heard        time.Time // when its last ping came
	ping         uint64    // the last one, if it is not answered; otherwise 0
	pingAt       uint64    // it is answered before the entry at this position
	wantsChanges bool
	wantsReports bool // of the ping
	hasLeft      bool
}

// NewReader adds a server that is told what is published from now on. The caller must call Close.
func (p *Publisher) NewReader() *Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for r := range p.readers { // those that have left are forgotten late
		if r.hasLeft && elapsed(r.heard, now) >= Validity+margin {
			delete(p.readers, r)
		}
	}
	r := &Reader{publisher: p, next: p.nextLocked(), heard: now}
	p.readers[r] = struct{}{}
	return r
}

// Ping is a request of another server to be told when it knows all that was published before.
type Ping struct {
	ID           uint64 // not 0
	Confirmed    uint64 // the server has taken in what comes before this position
	WantsChanges bool   // it has readers of live events
	WantsReports bool   // it wants to know what is reported, as Report says
}

// Ping takes a ping. Its answer comes with Next.
func (r *Reader) Ping(ping Ping) {
	p := r.publisher
	p.mu.Lock()
	defer p.mu.Unlock()
	r.heard = time.Now()
	r.ping, r.pingAt = ping.ID, p.nextLocked()
	r.confirmed = max(r.confirmed, min(ping.Confirmed, r.next))
	r.wantsChanges, r.wantsReports = ping.WantsChanges, ping.WantsReports
	p.notifyLocked()
}

// Confirm records that the server has taken in what comes before a position.
func (r *Reader) Confirm(position uint64) {
	p := r.publisher
	p.mu.Lock()
	defer p.mu.Unlock()
	r.confirmed = max(r.confirmed, min(position, r.next))
	p.notifyLocked()
}

// Batch is what a server is told next.
type Batch struct {
	Entries  []Entry
	Position uint64 // of the entry after them; 0 if more of the same follows
	Pong     uint64 // the ping that is answered after them; 0 for none
	// Ages are those of all accounts that the agents of the server report, if the ping wanted reports; otherwise nil.
	Ages []Age
}

// ErrBehind means that a server is so far behind that it must begin again.
var ErrBehind = errors.New("the server is too far behind")

// maxBatchEntries bounds a batch.
const maxBatchEntries = 64

// Next waits for the next batch. reports returns what the agents of this server report. The error is ErrBehind if entries are missing.
func (r *Reader) Next(ctx context.Context, reports func() []Report) (Batch, error) {
	for {
		batch, wantsReports, changed, err := r.take()
		if err == nil && wantsReports {
			batch.Ages = agesOf(reports(), time.Now())
		}
		if err != nil || batch.Position != 0 {
			return batch, err
		}
		select {
		case <-ctx.Done():
			return Batch{}, context.Cause(ctx)
		case <-changed:
		}
	}
}

func (r *Reader) take() (batch Batch, wantsReports bool, changed <-chan struct{}, err error) {
	p := r.publisher
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.next < p.first {
		return Batch{}, false, nil, ErrBehind
	}
	waiting := p.entries[r.next-p.first:]
	if len(waiting) == 0 && r.ping == 0 {
		return Batch{}, false, p.changed, nil
	}
	waiting = waiting[:min(len(waiting), maxBatchEntries)]
	for _, e := range waiting {
		batch.Entries = append(batch.Entries, e.Entry)
	}
	r.next += uint64(len(waiting))
	batch.Position = r.next
	if r.ping != 0 && r.next >= r.pingAt {
		batch.Pong, r.ping = r.ping, 0
		wantsReports = r.wantsReports
	}
	p.trimLocked()
	return batch, wantsReports, nil, nil
}

// Close ends the connection of the server. It may be current for a moment yet.
func (r *Reader) Close() {
	p := r.publisher
	p.mu.Lock()
	defer p.mu.Unlock()
	r.hasLeft = true
	p.trimLocked()
	p.notifyLocked()
}
