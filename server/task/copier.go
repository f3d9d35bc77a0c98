package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
)

// copier keeps a copy of a running task at one other server, which continues the task if this one ends. The copy has what was submitted
// and what the current operation has done; it is in the memory of the other server only.
//
//	connecting ──> copied ──> ended
//	     ^───────────┘ the other server has gone
//
// The row of the task names the copy. A copy that is not named there is behind, and counts for nothing. While there is none, the task
// runs without it, and the copier looks for another server.
type copier struct {
	tasks *Tasks
	head  headFrame
	ctx   context.Context // of streams; canceled when the other server had time to drop the copy
	stop  context.CancelFunc
	// searching is the context of looking for another server; canceled when the task has ended.
	searching  context.Context
	stopSearch context.CancelFunc
	moved      func() // stores that the copy is at another server; set before the task runs
	named      atomic.Pointer[standby]

	mu          turn
	ops         []opFrame // those of the current operation and after it
	from        checkpoint
	steps       []step // of the current operation
	link        *copyLink
	failed      vedette.ServerID // the last one that did not answer, which is asked last
	isEnded     bool
	isSearching bool
}

// turn is a lock that is held while other servers are waited for, for a bounded time.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits for the turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock gives it up.
func (t turn) Unlock() { <-t }

// standby names the copy of a task.
type standby struct {
	Server vedette.ServerID `json:"server"`
	Copy   string           `json:"copy"`
}

const (
	// copyWait is how long a task waits for another server before it runs without a copy.
	copyWait = 500 * time.Millisecond
	// searchWait is the same for a search while the task runs. The next change waits as long at most.
	searchWait = 2 * time.Second
	// handOverWait is how long another server may take to go on with a task when this one stops.
	handOverWait = 3 * time.Second
	// endWait is how long another server may take to drop a copy.
	endWait = time.Second
	// maxCandidates is how many servers a task asks in a row.
	maxCandidates = 3
)

// newCopier returns a copier for a run; nil if no other server shares the database, or if the task cannot be continued elsewhere.
func (t *Tasks) newCopier(r *taskRun) *copier {
	if t.cfg.Sharing == nil {
		return nil
	}
	c := &copier{tasks: t, mu: newTurn(), head: headFrame{ID: r.id, Owner: t.owner, Run: r.journal.run, Began: r.journal.began,
		Started:   r.task.Started,
		RequestID: r.options.RequestID, Application: r.options.Application, User: r.options.User, Requester: sentRequester(r.options.Requester),
		Source: r.options.Source, Accounts: r.task.Accounts, Ops: len(r.ops)}}
	for i := range r.ops {
		if i < r.first {
			continue
		}
		f, err := newOpFrame(i, &r.ops[i])
		if err != nil {
			return nil
		}
		c.ops = append(c.ops, f)
	}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(t.baseCtx))
	c.searching, c.stopSearch = context.WithCancel(c.ctx)
	return c
}

// begin makes the copy, if another server takes it in time.
func (c *copier) begin(from checkpoint, steps []step) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.from, c.steps = from, slices.Clone(steps)
	if !c.connectLocked(copyWait) {
		c.searchLocked()
	}
}

// beginOp records that the operations before one have ended.
func (c *copier) beginOp(from checkpoint) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.ops) > 0 && c.ops[0].Op < from.Op {
		c.ops = slices.Delete(c.ops, 0, 1)
	}
	c.from, c.steps = from, nil
	c.sendLocked(&frame{From: &from})
}

// beginChange records a change, and waits until the other server has it. If it does not answer, the copy is made at another one.
func (c *copier) beginChange(s step) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, s)
	link := c.link
	if link == nil {
		return
	}
	if c.sendLocked(&frame{Step: &s}) && link.awaitWithin(copyWait) {
		return
	}
	c.dropLocked(link)
	if !c.connectLocked(copyWait) {
		c.searchLocked()
	}
}

// answer records the answer to a step, which is a new one if it reads.
func (c *copier) answer(s step) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = addStep(c.steps, s)
	c.sendLocked(&frame{Step: &s})
}

// end drops the copy.
func (c *copier) end() {
	if c == nil {
		return
	}
	c.stopSearch()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isEnded = true
	c.named.Store(nil)
	c.sendLocked(&frame{End: true})
	if c.link == nil {
		c.stop()
		return
	}
	time.AfterFunc(endWait, c.stop)
}

// handOver makes the other server go on with the task, and reports whether it does. The run must not do anything any more.
func (c *copier) handOver() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.stop()
	c.isEnded = true
	if c.link == nil && !c.connectLocked(copyWait) {
		return false
	}
	return c.sendLocked(&frame{Continue: true}) && c.link.awaitWithin(handOverWait)
}

// standby returns what the row of the task says of the copy; nil if there is none.
func (c *copier) standby() *standby {
	if c == nil {
		return nil
	}
	return c.named.Load()
}

// sendLocked sends a frame, and reports whether it did. The link that fails is dropped by its reader. A server that stands still does not
// read, and is not waited for.
func (c *copier) sendLocked(f *frame) bool {
	if c.link == nil {
		return false
	}
	timer := time.AfterFunc(copyWait, c.link.cancel)
	defer timer.Stop()
	if err := c.link.send(f); err != nil {
		c.link.cancel()
		return false
	}
	return true
}

// connectLocked copies the task to another server, within a time, and reports whether one has taken it.
func (c *copier) connectLocked(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.searching, within)
	defer cancel()
	candidates := c.tasks.cfg.Sharing.Candidates()
	mathrand.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	if i := slices.Index(candidates, c.failed); i >= 0 {
		candidates = append(slices.Delete(candidates, i, i+1), c.failed)
	}
	for _, server := range candidates[:min(len(candidates), maxCandidates)] {
		if ctx.Err() != nil {
			return false
		}
		link, err := c.copyTo(ctx, server)
		if err == nil {
			c.link = link
			c.named.Store(&standby{server, link.copy})
			go c.watch(link)
			return true
		}
		c.failed = server
		c.tasks.cfg.Log.DebugContext(ctx, "another server has not taken the copy of a task", "task", c.head.ID, "server", server, "error", err)
	}
	return false
}

// copyTo makes a copy at a server, and waits for as long as ctx lasts until it is complete.
func (c *copier) copyTo(ctx context.Context, server vedette.ServerID) (*copyLink, error) {
	streamCtx, cancel := context.WithCancel(c.ctx)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	stream, err := c.tasks.cfg.Sharing.Peers.CopyTask(streamCtx, server) //nolint:contextcheck // the stream outlives the wait for it
	if err != nil {
		cancel()
		return nil, err
	}
	link := &copyLink{server: server, copy: rand.Text(), stream: stream, cancel: cancel,
		changed: make(chan struct{}), done: make(chan struct{})}
	go link.receive()
	if err = c.sendAll(link); err == nil {
		err = link.await(ctx, link.sent)
	}
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return link, nil
}

// sendAll sends what the task is, and how far it is.
func (c *copier) sendAll(link *copyLink) error {
	head := c.head
	head.Copy = link.copy
	frames := []*frame{{Head: &head}}
	for i := range c.ops {
		frames = append(frames, &frame{Op: &c.ops[i]})
	}
	frames = append(frames, &frame{From: &c.from})
	for i := range c.steps {
		frames = append(frames, &frame{Step: &c.steps[i]})
	}
	for _, f := range frames {
		if err := link.send(f); err != nil {
			return err
		}
	}
	return nil
}

// watch looks for another server when the one of a link has gone, or stops.
func (c *copier) watch(link *copyLink) {
	for hasLeft := false; !hasLeft; {
		changed := c.tasks.cfg.Sharing.Changed()
		if !slices.Contains(c.tasks.cfg.Sharing.Candidates(), link.server) {
			break
		}
		select {
		case <-link.done:
			hasLeft = true
		case <-changed:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isEnded {
		c.stop()
		return
	}
	if c.dropLocked(link) {
		c.searchLocked()
	}
}

// dropLocked forgets a link, and reports whether it was the current one.
func (c *copier) dropLocked(link *copyLink) bool {
	link.cancel()
	if c.link != link {
		return false
	}
	c.link, c.failed = nil, link.server
	c.named.Store(nil)
	return true
}

func (c *copier) searchLocked() {
	if !c.isSearching && !c.isEnded {
		c.isSearching = true
		go c.search()
	}
}

// search makes the copy again and again until another server has it, or the task has ended.
func (c *copier) search() {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 200*time.Millisecond, 10*time.Second
	for sleep(c.searching, wait.NextBackOff()) == nil {
		c.mu.Lock()
		isOver := c.isEnded || c.link != nil
		hasMoved := !isOver && c.connectLocked(searchWait)
		if isOver || hasMoved {
			c.isSearching = false
		}
		c.mu.Unlock()
		if hasMoved {
			c.moved()
		}
		if isOver || hasMoved {
			return
		}
	}
}

// copyLink is the stream to the server of a copy.
type copyLink struct {
	server vedette.ServerID
	copy   string // its name
	stream CopyStream
	cancel context.CancelFunc
	sent   uint64        // frames; of who sends
	done   chan struct{} // closed when the stream has ended

	mu      sync.Mutex
	taken   uint64
	changed chan struct{} // closed and replaced when taken grows
}

func (l *copyLink) send(f *frame) error {
	raw, err := json.Marshal(f)
	if err != nil { // frames consist of decoded values
		panic(err)
	}
	if err := l.stream.Send(raw); err != nil {
		return err
	}
	l.sent++
	return nil
}

// receive takes in what the other server says, until the stream ends.
func (l *copyLink) receive() {
	defer close(l.done)
	for {
		taken, err := l.stream.Receive()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.taken = taken
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
}

// awaitWithin waits until the other server has taken in what was sent, and ends the stream if that takes longer.
func (l *copyLink) awaitWithin(d time.Duration) bool {
	timer := time.AfterFunc(d, l.cancel)
	defer timer.Stop()
	return l.await(context.Background(), l.sent) == nil
}

var errCopyLost = errors.New("the other server has ended the stream")

// await waits until the other server has taken in so many frames.
func (l *copyLink) await(ctx context.Context, frames uint64) error {
	for {
		l.mu.Lock()
		taken, changed := l.taken, l.changed
		l.mu.Unlock()
		if taken >= frames {
			return nil
		}
		select {
		case <-changed:
		case <-l.done:
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.taken >= frames {
				return nil
			}
			return errCopyLost
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
