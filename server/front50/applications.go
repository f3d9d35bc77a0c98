package front50

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Applications knows which applications Front50 has. It asks once a minute, like Clouddriver.
// Until Front50 has answered, and while it does not answer, nothing is taken away: an unreachable
// Front50 must not make applications look deleted.
type Applications struct {
	client  *Client
	log     *slog.Logger
	current atomic.Pointer[applicationSet] // nil before the first answer
}

// applicationSet is one answer.
type applicationSet struct {
	names   map[string]bool // in lower case
	version uint64          // increases with each change
}

// applicationsInterval is the time between two requests for all applications.
const applicationsInterval = time.Minute

// NewApplications returns Applications that have not asked yet.
func NewApplications(client *Client, log *slog.Logger) *Applications {
	return &Applications{client: client, log: log}
}

// Run asks Front50 until ctx ends.
func (a *Applications) Run(ctx context.Context) error {
	ticker := time.NewTicker(applicationsInterval)
	defer ticker.Stop()
	for {
		if err := a.refresh(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("the applications of Front50 could not be read: the last known ones count", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (a *Applications) refresh(ctx context.Context) error {
	var list []struct {
		Name string `json:"name"`
	}
	if err := a.client.get(ctx, "/v2/applications?restricted=false", http.Header{}, &list); err != nil {
		return err
	}
	names := make(map[string]bool, len(list))
	for _, application := range list {
		names[strings.ToLower(application.Name)] = true
	}
	previous := a.current.Load()
	if previous != nil && equalSets(previous.names, names) {
		return nil
	}
	next := &applicationSet{names: names, version: 1}
	if previous != nil {
		next.version += previous.version
	}
	a.current.Store(next)
	return nil
}

func equalSets(x, y map[string]bool) bool {
	if len(x) != len(y) {
		return false
	}
	for name := range x {
		if !y[name] {
			return false
		}
	}
	return true
}

// Snapshot returns a function that reports whether an application exists in Front50, in any case, and
// a version that changes with what it reports.
func (a *Applications) Snapshot() (known func(application string) bool, version uint64) {
	set := a.current.Load()
	if set == nil {
		return func(string) bool { return true }, 0
	}
	return func(application string) bool { return set.names[strings.ToLower(application)] }, set.version
}
