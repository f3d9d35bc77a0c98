package configreload

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// refreshInterval is how often secrets are fetched again from where references lead, give or take a
// quarter: thousands of agents that were started by one rollout would ask the engine at the same moment.
const refreshInterval = time.Minute

// refreshPause returns how long to wait before secrets are fetched again. random returns 0 to 1.
func refreshPause(random func() float64) time.Duration {
	return refreshInterval*3/4 + time.Duration(random()*float64(refreshInterval/2))
}

// refresher fetches the secrets of a configuration again, and returns the references of those that
// have changed.
type refresher interface {
	RefreshSecrets(ctx context.Context) ([]string, error)
}

// refreshSecrets fetches the secrets of the current configuration again until ctx ends, and says that
// some have changed. It is apart from reloads, because an engine that does not answer takes time.
func refreshSecrets[C refresher](ctx context.Context, current func() C, changed chan<- struct{}, log *slog.Logger) {
	timer := time.NewTimer(refreshPause(rand.Float64))
	defer timer.Stop()
	failure := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		references, err := current().RefreshSecrets(ctx)
		timer.Reset(refreshPause(rand.Float64))
		if err != nil && ctx.Err() == nil && err.Error() != failure {
			log.Warn("cannot fetch secrets again, keeping the old ones", "error", err)
		}
		failure = ""
		if err != nil {
			failure = err.Error()
		}
		if len(references) > 0 {
			log.Info("secrets have changed", "references", references)
			select {
			case changed <- struct{}{}:
			default: // a reload is due anyway
			}
		}
	}
}
