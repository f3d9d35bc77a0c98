// Package configreload has what both programs share when they reload their configuration.
package configreload

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"time"
)

// refreshInterval is how often secrets are fetched again from where references lead.
const refreshInterval = time.Minute

// refresher fetches the secrets of a configuration again, and returns the references of those that
// have changed.
type refresher interface {
	RefreshSecrets(ctx context.Context) ([]string, error)
}

// RefreshSecrets fetches the secrets of the current configuration again until ctx ends, and says that
// some have changed. It is apart from reloads, because an engine that does not answer takes time.
func RefreshSecrets[C refresher](ctx context.Context, current func() C, changed chan<- struct{}, log *slog.Logger) {
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

// FirstIrregular returns the first file that can be read only once, such as a pipe, or "".
func FirstIrregular(files []string) string {
	at := slices.IndexFunc(files, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.Mode().IsRegular()
	})
	if at < 0 {
		return ""
	}
	return files[at]
}
