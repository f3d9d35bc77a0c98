package configreload

import "github.com/vedette-io/vedette/internal/configstatus"

func (r *Reloader[C]) reportSuccess() {
	r.o.Metrics.ConfigInEffect(r.since)
	r.report(r.status())
}

func (r *Reloader[C]) report(s configstatus.Status) {
	r.inEffect.Store(&inEffect[C]{started: r.started, current: r.current, status: s})
	if r.o.Report != nil {
		r.o.Report(s)
	}
}

// status returns what is in effect.
func (r *Reloader[C]) status() configstatus.Status {
	s := configstatus.Status{Since: r.since, Files: r.current.ReadFiles(), RestartKeys: r.current.NeedRestart(r.started)}
	if r.o.Rejected != nil {
		s.RejectedAccounts = r.o.Rejected(r.current)
	}
	return s
}

// Status returns which configuration is in effect. It may be called from any goroutine.
func (r *Reloader[C]) Status() configstatus.Status { return r.inEffect.Load().status }

// Effective returns what is in effect for operators. It may be called from any goroutine.
func (r *Reloader[C]) Effective() configstatus.Effective {
	e := r.inEffect.Load()
	return configstatus.Effective{Status: e.status, Name: r.o.Name, Settings: e.current.InEffect(e.started)}
}
