package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch/queue"
)

const (
	// firstPositionAfter is how long an account waits before it reports its position, because most
	// wait for less.
	firstPositionAfter = 2 * time.Second
	// positionInterval is how often the position is reported while the account waits.
	positionInterval = 10 * time.Second
)

// queueStatus is what the state of the account says about its wait for the budget.
type queueStatus struct {
	mu      sync.Mutex // held during Put, so that messages are reported in order
	message string     // as last reported
}

// wait waits until a ticket is granted, and reports the position of the account meanwhile.
func (s *queueStatus) wait(ctx context.Context, w *Watcher, t *queue.Ticket) error {
	select {
	case <-t.Granted: // at once
		return s.report(ctx, w)
	default:
	}
	timer := time.NewTimer(firstPositionAfter)
	defer timer.Stop()
	for {
		select {
		case <-t.Granted:
			return s.report(ctx, w)
		case <-timer.C:
			if err := s.report(ctx, w); err != nil {
				return err
			}
			timer.Reset(positionInterval)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// report reports the position of the account, or that it does not wait anymore.
func (s *queueStatus) report(ctx context.Context, w *Watcher) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	message := ""
	if before, of, waits := w.cfg.Limiter.queue.Position(&w.queue); waits {
		message = fmt.Sprintf("waits to list its objects: %d of the %d accounts with lists that wait are before it; tasks.totalBudget bounds how many lists run at the same time",
			before, of)
	}
	return s.setLocked(ctx, w, message)
}

// setGroup reports that the account waits for its group, or clears that.
func (s *queueStatus) setGroup(ctx context.Context, w *Watcher, waits bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	message := ""
	if waits {
		message = "waits until other accounts have started: kubernetes.cacheGroupSize and kubernetes.cacheGroupDelayMs bound how many start together"
	}
	return s.setLocked(ctx, w, message)
}

func (s *queueStatus) setLocked(ctx context.Context, w *Watcher, message string) error {
	if message == s.message {
		return nil
	}
	s.message = message
	return w.reportAccountStatus(ctx, vedette.FeedPending, message)
}
