package watch

import (
	"context"
	"sync"
	"time"

	"github.com/vedette-io/vedette/agent/watch/queue"
)

// How much a snapshot may use of a shared permit.
const (
	maxSnapshotWait = time.Minute // of waiting for the API server; Config.PagePermitTimeout bounds it per page
	maxSharedBytes  = 256 << 20
	minKeptBytes    = 16 << 10 // a snapshot with fewer bytes may have to begin again
)

// snapshotPermit is the right to read one snapshot. It counts in the Budget until the snapshot
// ends. It starts with one of the permits that all accounts share, and gives it back if the API
// server is silent or the list is very long. The snapshot then continues, or waits, with one of the permits for slow API
// servers, of which an account has one at a time. So clusters that hang wait only for each
// other. A nil snapshotPermit bounds nothing.
//
//	shared ──the API server is silent, or the list is very long──> slow
//
// After the API server of an account was silent within a page, the next snapshots of the
// account start with a slow permit, until one of them did not have to wait.
type snapshotPermit struct {
	w      *Watcher
	timer  *time.Timer
	ticket *queue.Ticket // nil before the snapshot may begin
	yield  func()        // ends the request, because the snapshots of other accounts go first

	// Owned by the goroutine of the feed:
	waitStart  time.Time     // of the current wait
	remaining  time.Duration // that this page may still wait
	waited     time.Duration
	bytes      int
	holdsSlow  bool // it holds a slow permit
	holdsLarge bool // its readPermit is for a large object

	mu          sync.Mutex
	holdsShared bool // it holds a shared permit
	arrived     int  // bytes of the snapshot
}

// acquireSnapshotPermit waits for a permit. The caller must release the result even if
// there is an error. yield is called at most once, from another goroutine.
func (w *Watcher) acquireSnapshotPermit(ctx context.Context, yield func()) (*snapshotPermit, error) {
	t := &snapshotPermit{w: w, remaining: w.cfg.PagePermitTimeout, yield: yield}
	t.timer = time.AfterFunc(time.Hour, t.handleSilence)
	t.timer.Stop()
	var err error
	if t.ticket, err = w.acquireTicket(ctx); err != nil {
		return t, err
	}
	if t.ticket.Slow { // the API server may have fallen silent while the feed waited
		return t, t.acquireSlow(ctx)
	}
	t.holdsShared = true
	return t, nil
}

// acquireVerificationPermit waits for a permit that nobody else waits for. The caller must release the
// result unless there is an error. yield is called at most once, from another goroutine.
func (w *Watcher) acquireVerificationPermit(ctx context.Context, yield func()) (*snapshotPermit, error) {
	for {
		if granted, ok := w.cfg.Limiter.queue.TryGrant(&w.queue); ok {
			return w.newVerificationPermit(ctx, granted, yield)
		}
		w.sleep(ctx, randomDuration(permitInterval/2, permitInterval*3/2))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func (w *Watcher) newVerificationPermit(ctx context.Context, granted *queue.Ticket, yield func()) (*snapshotPermit, error) {
	t := &snapshotPermit{w: w, remaining: w.cfg.PagePermitTimeout, yield: yield, ticket: granted, holdsShared: !granted.Slow}
	t.timer = time.AfterFunc(time.Hour, t.handleSilence)
	t.timer.Stop()
	if !granted.Slow {
		return t, nil
	}
	if err := t.acquireSlow(ctx); err != nil {
		t.release(false)
		return nil, err
	}
	return t, nil
}

// handleSilence gives up the shared permit. If the snapshot uses up the budget while other accounts wait, and
// has hardly begun, it begins again after theirs.
func (t *snapshotPermit) handleSilence() {
	t.w.cfg.Limiter.queue.SetSlow(&t.w.queue, true)
	t.mu.Lock()
	arrived := t.arrived
	t.mu.Unlock()
	if arrived < minKeptBytes && t.w.cfg.Limiter.queue.IsBlocked() {
		t.yield()
	}
	t.releaseShared()
}

func (t *snapshotPermit) acquireSlow(ctx context.Context) error {
	if err := acquirePermit(ctx, t.w.slowPermit); err != nil {
		return err
	}
	if err := acquirePermit(ctx, t.w.cfg.Limiter.slowPermits); err != nil {
		<-t.w.slowPermit
		return err
	}
	t.holdsSlow = true
	return nil
}

// startPage resets the time that a page may wait.
func (t *snapshotPermit) startPage() { t.remaining = t.w.cfg.PagePermitTimeout }

// StartWait notes that the snapshot waits for the API server from now on.
func (t *snapshotPermit) StartWait() {
	if t == nil {
		return
	}
	t.waitStart = time.Now()
	if !t.holdsSlow {
		t.timer.Reset(t.remaining)
	}
}

// EndWait notes that n bytes arrived. If the wait cost the snapshot its shared permit, it
// waits for a slow one. A snapshot that reads a large object first finishes the object
// without a permit, because the holder of the slow permit may itself wait to read a large
// object.
func (t *snapshotPermit) EndWait(ctx context.Context, n int) error {
	if t == nil {
		return nil
	}
	t.timer.Stop()
	waited := time.Since(t.waitStart)
	t.remaining -= waited
	t.waited += waited
	t.bytes += n
	t.mu.Lock()
	t.arrived += n
	t.mu.Unlock()
	if t.holdsSlow {
		return nil
	}
	if t.waited > maxSnapshotWait || t.bytes > maxSharedBytes {
		t.releaseShared()
	}
	t.mu.Lock()
	holdsShared := t.holdsShared
	t.mu.Unlock()
	if holdsShared || t.holdsLarge {
		return nil
	}
	return t.acquireSlow(ctx)
}

// releaseShared gives the shared permit back, if there is one.
func (t *snapshotPermit) releaseShared() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holdsShared {
		t.holdsShared = false
		t.w.cfg.Limiter.queue.ReleaseFast(t.ticket)
	}
}

// release gives the permit back after the snapshot, complete or not.
func (t *snapshotPermit) release(complete bool) {
	t.timer.Stop()
	t.releaseShared()
	t.releaseSlow(complete)
	if t.ticket != nil {
		t.w.cfg.Limiter.queue.Release(&t.w.queue, t.ticket)
	}
}

func (t *snapshotPermit) releaseSlow(complete bool) {
	if !t.holdsSlow {
		return
	}
	if complete && t.remaining > 0 {
		t.w.cfg.Limiter.queue.SetSlow(&t.w.queue, false)
	}
	<-t.w.cfg.Limiter.slowPermits
	<-t.w.slowPermit
}

// acquireTicket waits until the feed may read its snapshot. The account reports its position meanwhile.
func (w *Watcher) acquireTicket(ctx context.Context) (*queue.Ticket, error) {
	q := w.cfg.Limiter.queue
	t := q.Enqueue(&w.queue)
	if err := w.queueStatus.wait(ctx, w, t); err != nil {
		q.Cancel(&w.queue, t)
		_ = w.queueStatus.report(context.WithoutCancel(ctx), w) // no other feed may wait; a sink that fails has ended the Watcher
		return nil, err
	}
	return t, nil
}
