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
// missing. Of several projections of a kind it takes the first.
func (a *Agent) newRedactor(settings uplink.ServerSettings) (*redact.Redactor, error) {
	hasOne := map[vedette.Kind]bool{}
	projections := slices.DeleteFunc(slices.Clone(settings.Projections), func(p vedette.Projection) bool {
		if hasOne[p.Kind] {
			a.log.Warn("skipped a second projection of a kind, which no server should send", "kind", p.Kind.String())
			return true
		}
		_, err := redact.New(redact.Config{}, []vedette.Projection{p}, nil)
		if err != nil {
			a.log.Warn("skipped a projection that this agent does not support, upgrade the agent", "kind", p.Kind.String(), "error", err)
		}
		hasOne[p.Kind] = err == nil
		return err != nil
	})
	return redact.New(a.cfg.Redact, projections, settings.Annotations)
}
