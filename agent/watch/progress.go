package watch

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
)

// errNoProgress reports that a feed has not reached a version although it is not silent.
var errNoProgress = errors.New("the feed does not keep up with its cluster")

const (
	// idleSteps is in how many steps it is measured that a feed is silent, so that a process that was frozen
	// does not take that time for it: it counts as one step.
	idleSteps = 15
	// maxProgressWait is how often the idle timeout a feed may take to reach a version while it advances.
	maxProgressWait = 8
)

// quietWatch is how long an extra watch must be without events to show that nothing happened.
const quietWatch = 5 * time.Second

// awaitVersion waits until a feed has reached a version. A quiet feed gets a bookmark only each
// minute, so after some seconds an extra watch from its mark asks whether there is anything to wait for.
func (f *feed) awaitVersion(ctx context.Context, version vedette.Mark, idleTimeout time.Duration) error {
	soon, cancel := context.WithTimeout(ctx, quietWatch/2)
	err := f.await(soon, version, idleTimeout)
	cancel()
	if err == nil || ctx.Err() != nil {
		return err
	}
	before, _ := f.mark()
	if f.isQuiet(ctx, before, version) && !f.putting.Load() {
		if after, _ := f.mark(); after == before {
			return nil
		}
	}
	return f.await(ctx, version, idleTimeout)
}

// isQuiet reports whether nothing happened between a mark and a version.
func (f *feed) isQuiet(ctx context.Context, mark, version vedette.Mark) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*quietWatch)
	defer cancel()
	began := time.Now()
	resp, err := f.requestWatch(ctx, mark, watchPlan{quietWatch, kube.Timeouts{Header: quietWatch, Progress: 2 * quietWatch}}, nil)
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
func (f *feed) await(ctx context.Context, version vedette.Mark, idleTimeout time.Duration) error {
	deadline := time.Now().Add(maxProgressWait * idleTimeout)
	for silent := 0; silent < idleSteps; silent++ {
		mark, advanced := f.waitForMark()
		if reached(mark, version) {
			return nil
		}
		if time.Now().After(deadline) {
			return errNoProgress
		}
		timer := time.NewTimer(idleTimeout / idleSteps)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-advanced:
			timer.Stop()
			silent = -1
		case <-timer.C:
			if f.putting.Load() || !f.isFollowing() {
				silent = -1
			}
		}
	}
	return nil
}

// reached reports whether a mark is at or behind a version. It reports false if that cannot be known.
func reached(mark, version vedette.Mark) bool { return mark == version || isOlder(version, mark) }
