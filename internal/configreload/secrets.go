package configreload

import (
	"context"
	"log/slog"
	"time"
)

// refreshInterval is how often secrets are fetched again from where references lead.
const refreshInterval = time.Minute

// refresher fetches the secrets of a configuration again, and returns the references of those that
// have changed.
type refresher interface {
	RefreshSecrets(ctx context.Context) ([]string, error)
}

// refreshSecrets fetches the secrets of the current configuration again until ctx ends, and says that
// some have changed. It is apart from reloads, because an engine that does not answer takes time.
func refreshSecrets[C refresher](ctx context.Context, current func() C, changed chan<- struct{}, log *slog.Logger) {
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	failure := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		references, err := current().RefreshSecrets(ctx)
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
