package watch

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
)

// progress is how far a feed is, for its verification.
type progress struct {
	mu        sync.Mutex
	mark      vedette.Mark
	snapshots int           // how often the feed was read anew, or began to be
	advanced  chan struct{} // closed when the feed advances; nil while nobody waits
}

func (p *progress) advance(mark vedette.Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = mark
	if p.advanced != nil {
		close(p.advanced)
		p.advanced = nil
	}
}

// restart notes that the feed is read anew from now on.
func (p *progress) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.snapshots++
}

func (p *progress) read() (mark vedette.Mark, snapshots int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mark, p.snapshots
}

func (p *progress) wait() (mark vedette.Mark, advanced <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.advanced == nil {
		p.advanced = make(chan struct{})
	}
	return p.mark, p.advanced
}

// errNoProgress reports that a feed has not reached a version although it is not silent.
var errNoProgress = errors.New("the feed does not keep up with its cluster")

const (
	// silenceSteps is in how many steps silence is measured, so that a process that was frozen
	// does not take the time for silence: that counts as one step.
	silenceSteps = 15
	// maxProgressWait is how often the idle timeout a feed may take to reach a version while it advances.
	maxProgressWait = 8
)

// quietWatch is how long an extra watch must be without events to show that nothing happened.
const quietWatch = 5 * time.Second

// awaitVersion waits until a feed has reached a version. A quiet feed gets a bookmark only each
// minute, so after some seconds an extra watch from its mark asks whether there is anything to wait for.
func (f *feed) awaitVersion(ctx context.Context, version vedette.Mark, silence time.Duration) error {
	soon, cancel := context.WithTimeout(ctx, quietWatch/2)
	err := f.await(soon, version, silence)
	cancel()
	if err == nil || ctx.Err() != nil {
		return err
	}
	before, _ := f.progress.read()
	if f.isQuiet(ctx, before, version) && !f.putting.Load() {
		if after, _ := f.progress.read(); after == before {
			return nil
		}
	}
	return f.await(ctx, version, silence)
}

// isQuiet reports whether nothing happened between a mark and a version.
func (f *feed) isQuiet(ctx context.Context, mark, version vedette.Mark) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*quietWatch)
	defer cancel()
	began := time.Now()
	resp, err := f.requestWatch(ctx, mark, watchPlan{quietWatch, kube.Timeouts{Header: quietWatch, Progress: 2 * quietWatch}})
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	s := f.newPermittedSplitter(ctx, resp.Body, nil)
	defer s.Close()
	for {
		fr, err := s.Frame()
		if err != nil {
			return errors.Is(err, io.EOF) && time.Since(began) >= quietWatch-time.Second // not ended by a proxy
		}
		if fr.Type != "BOOKMARK" {
			return false
		}
		if at, err := jsonstream.ResourceVersion(fr.Object); err == nil && reached(vedette.Mark(at), version) {
			return true
		}
	}
}

// await waits until a feed has reached a version or was silent for so long that nothing happened
// up to there. A feed that waits for the server is not silent.
func (f *feed) await(ctx context.Context, version vedette.Mark, silence time.Duration) error {
	deadline := time.Now().Add(maxProgressWait * silence)
	for silent := 0; silent < silenceSteps; silent++ {
		mark, advanced := f.progress.wait()
		if reached(mark, version) {
			return nil
		}
		if time.Now().After(deadline) {
			return errNoProgress
		}
		timer := time.NewTimer(silence / silenceSteps)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-advanced:
			timer.Stop()
			silent = -1
		case <-timer.C:
			if f.putting.Load() || !f.watching.Load() {
				silent = -1
			}
		}
	}
	return nil
}

// reached reports whether a mark is at or behind a version. It reports false if that cannot be known.
func reached(mark, version vedette.Mark) bool { return mark == version || isOlder(version, mark) }
