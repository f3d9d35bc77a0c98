package agent

import (
	"reflect"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
)

// sharedRedactor holds the redactor of all accounts, which depends only on the configuration of the
// agent and the settings of the server. A redactor for each account would cost memory, and its
// buffers would rarely be used again before the garbage collector takes them.
type sharedRedactor struct {
	mu       sync.Mutex
	settings uplink.ServerSettings // of redactor
	redactor *redact.Redactor      // nil before the first
}

// redactorFor returns a redactor with the projections of the server.
func (a *Agent) redactorFor(settings uplink.ServerSettings) (*redact.Redactor, error) {
	shared := &a.sharedRedactor
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.redactor != nil && reflect.DeepEqual(shared.settings, settings) {
		return shared.redactor, nil
	}
	redactor, err := a.newRedactor(settings)
	if err != nil {
		return nil, err
	}
	shared.settings, shared.redactor = settings, redactor
	return redactor, nil
}

// newRedactor skips projections whose syntax this agent is too old for, so that only their fields are
// missing.
func (a *Agent) newRedactor(settings uplink.ServerSettings) (*redact.Redactor, error) {
	projections := slices.DeleteFunc(slices.Clone(settings.Projections), func(p vedette.Projection) bool {
		_, err := redact.New(redact.Config{}, []vedette.Projection{p}, nil)
		if err != nil {
			a.log.Warn("skipped a projection that this agent does not support, upgrade the agent", "kind", p.Kind.String(), "error", err)
		}
		return err != nil
	})
	return redact.New(a.cfg.Redact, projections, settings.Annotations)
}
