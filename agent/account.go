package agent

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/wire"
)

// account is one account's life in the agent:
//
//	reaching ──identified──> registered ──cacher──> reporting
//	                             │  ↑  ↑──standby──────┘
//	                             └──refused (asked again, ever more rarely)
//
// Reaching and refused say why, and harm no other account.
type account struct {
	agent           *Agent
	cfg             Account
	log             *slog.Logger
	indexes         indexes
	assignmentReady chan struct{} // holds a token while an assignment waits

	lastCredentialsErr error      // why credentials could not be read again, as last logged; owned by run
	reportMu           sync.Mutex // held while the server is told of the state, so that no news overtakes older news

	mu       sync.Mutex
	pending  *uplink.Assignment // the latest; those before it are void
	operator *operate.Operator  // nil until the cluster was reached
	watcher  *watch.Watcher     // the last that reported; nil before it
	state    string
	err      error
}

func newAccount(a *Agent, cfg Account) *account {
	return &account{agent: a, cfg: cfg, log: a.log.With("account", cfg.Name), assignmentReady: make(chan struct{}, 1), state: "reaching"}
}

// run serves the account until ctx ends. It begins anew where the kubeconfig has
// changed: another cluster may stand there now.
func (a *account) run(ctx context.Context) error {
	for ctx.Err() == nil {
		cluster, err := a.connect(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		a.serveAndDeregister(ctx, cluster)
	}
	return nil
}

func (a *account) serveAndDeregister(ctx context.Context, cluster *kube.Cluster) {
	defer cluster.Close()
	defer a.agent.link.Deregister(a.cfg.Name)
	defer a.agent.box.Forget(a.cfg.Name)
	a.serve(ctx, cluster)
}

// connect tries until the cluster has said who it is.
func (a *account) connect(ctx context.Context) (*kube.Cluster, error) {
	return backoff.Retry(ctx, func() (*kube.Cluster, error) {
		cluster, err := a.connectOnce(ctx)
		if err != nil && ctx.Err() == nil {
			a.setState("reaching", err)
			a.log.Warn("cluster can't be reached; tried again", "error", err)
		}
		return cluster, err
	}, backoff.WithBackOff(newBackoff()), backoff.WithMaxElapsedTime(0))
}

func newBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = time.Second, 15*time.Second
	return b
}

func (a *account) connectOnce(ctx context.Context) (*kube.Cluster, error) {
	cluster, err := kube.Connect(a.cfg.Access, a.agent.cfg.ConnectOptions)
	if err != nil {
		return nil, err
	}
	if err := a.identifyAndRegister(ctx, cluster); err != nil {
		cluster.Close()
		return nil, err
	}
	return cluster, nil
}

// identifyAndRegister registers a cluster that can be reached.
func (a *account) identifyAndRegister(ctx context.Context, cluster *kube.Cluster) error {
	identity, namespaces, err := cluster.Identify(ctx)
	if err != nil {
		return err
	}
	if err := a.initOperator(cluster); err != nil {
		return err
	}
	a.setState("registered", nil)
	return a.register(identity, namespaces)
}

func (a *account) register(identity vedette.Cluster, namespaces []string) error {
	return a.agent.link.Register(vedette.Account{
		Name: a.cfg.Name, Cluster: identity, Properties: a.cfg.Properties, Namespaces: namespaces,
		Shape: projectionHash(a.agent.cfg.Redact, a.cfg.Selection),
	})
}

// setAssignment notes the server's decision. It does not wait.
func (a *account) setAssignment(as uplink.Assignment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending = &as
	select {
	case a.assignmentReady <- struct{}{}:
	default:
	}
}

func (a *account) takeAssignment() *uplink.Assignment {
	a.mu.Lock()
	defer a.mu.Unlock()
	as := a.pending
	a.pending = nil
	return as
}

// serve does what the server decides, until ctx ends or the cluster must be reached
// in another way.
func (a *account) serve(ctx context.Context, cluster *kube.Cluster) {
	rereadTicker := time.NewTicker(a.agent.cfg.RereadInterval)
	defer rereadTicker.Stop()
	var r *watchRun
	defer func() { r.stop() }()
	retryTimer, retryBackoff := time.NewTimer(time.Hour), newBackoff()
	retryTimer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rereadTicker.C:
			if a.accessChanged(cluster) {
				return
			}
		case <-r.ended():
			a.log.Error("watching ended; begun anew", "error", r.err)
			r.stop()
			r = nil
			a.agent.link.Deregister(a.cfg.Name) // nobody follows the cluster meanwhile
			retryTimer.Reset(retryBackoff.NextBackOff())
		case <-retryTimer.C:
			if err := a.reregister(ctx, cluster); err != nil {
				retryTimer.Reset(retryBackoff.NextBackOff())
			}
		case <-a.assignmentReady:
			as := a.takeAssignment()
			if as == nil {
				continue
			}
			if as.Role == wire.Assignment_ROLE_CACHER {
				retryBackoff.Reset()
				r = a.ensureWatching(ctx, cluster, r, *as)
				continue
			}
			r.stop()
			r = nil
			a.agent.box.Forget(a.cfg.Name)
			if a.handleNonCacherRole(*as) {
				retryTimer.Reset(retryBackoff.NextBackOff())
			}
		}
	}
}

// accessChanged reports whether the cluster must be reached in another way. What can't be
// used changes nothing, and is logged once.
func (a *account) accessChanged(cluster *kube.Cluster) bool {
	changed, err := cluster.AccessChanged(a.cfg.Access)
	if err != nil && (a.lastCredentialsErr == nil || a.lastCredentialsErr.Error() != err.Error()) {
		a.log.Warn("credentials can't be read again; those that were read before go on", "error", err)
	}
	a.lastCredentialsErr = err
	if changed {
		a.log.Info("credentials have changed; the cluster is connected to anew")
	}
	return changed
}

func (a *account) reregister(ctx context.Context, cluster *kube.Cluster) error {
	identity, namespaces, err := cluster.Identify(ctx)
	if err != nil {
		a.setState("reaching", err)
		return err
	}
	return a.register(identity, namespaces)
}

// handleNonCacherRole notes that the account is not this agent's to report, and says
// whether to ask again.
func (a *account) handleNonCacherRole(as uplink.Assignment) bool {
	if as.Role != wire.Assignment_ROLE_REFUSED {
		a.setState("standby", nil)
		return false
	}
	a.setState("refused", errors.New(as.Message))
	a.log.Warn("account refused by the server; asked again later", "reason", as.Message)
	return true
}

// watchRun is a watcher that runs.
type watchRun struct {
	watcher       *watch.Watcher
	announcements feedAnnouncements
	settings      uplink.ServerSettings
	cancel        context.CancelFunc
	done          chan struct{}
	err           error // after done
}

// ended returns a channel that is closed when the watcher has ended by itself;
// nil, which is never ready, where there is none.
func (r *watchRun) ended() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.done
}

func (r *watchRun) stop() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}

// ensureWatching makes the account report in the term it was given. A watcher that runs
// goes on where the outbox can go on from the server's marks, so that a lost
// connection costs the API server nothing.
func (a *account) ensureWatching(ctx context.Context, cluster *kube.Cluster, r *watchRun, as uplink.Assignment) *watchRun {
	settings := a.agent.serverSettings()
	if r != nil && !reflect.DeepEqual(r.settings, settings) {
		r.stop()
		a.agent.box.Forget(a.cfg.Name)
		r = nil
	}
	restart := a.agent.box.Open(a.cfg.Name, as.Term, as.Marks)
	a.setState("reporting", nil)
	if r == nil {
		return a.startWatching(ctx, cluster, settings, as)
	}
	if err := r.announcements.resend(ctx); err != nil {
		return r // ctx has ended
	}
	for feed, mark := range restart {
		if !r.watcher.Reset(feed, mark) {
			a.agent.box.ResumeFeed(a.cfg.Name, feed, mark) // for when it will be watched
		}
	}
	return r
}

func (a *account) startWatching(ctx context.Context, cluster *kube.Cluster, settings uplink.ServerSettings, as uplink.Assignment) *watchRun {
	ctx, cancel := context.WithCancel(ctx)
	r := &watchRun{settings: settings, cancel: cancel, done: make(chan struct{}), announcements: feedAnnouncements{box: a.agent.box, account: a.cfg.Name}}
	redactor, err := a.newRedactor(settings)
	if err != nil {
		r.err = err
		close(r.done)
		return r
	}
	selection := a.cfg.Selection
	selection.DefaultKinds = settings.Kinds
	r.watcher = watch.NewWatcher(cluster, selection, &sink{
		account: a.cfg.Name, box: a.agent.box, redactor: redactor, indexes: &a.indexes, announcements: &r.announcements, setAccountError: a.setAccountError,
		log: a.log, snapshots: map[vedette.Feed]*index{},
	}, a.agent.cfg.Watch)
	a.setWatcher(r.watcher, redactor)
	go func() {
		defer close(r.done)
		r.err = r.watcher.Run(ctx, as.Marks)
	}()
	return r
}

// newRedactor lifts what the server asks for, but for lifts in a syntax that this
// agent is too old for: their fields are missing then, and nothing else is.
func (a *account) newRedactor(settings uplink.ServerSettings) (*redact.Redactor, error) {
	lifts := slices.DeleteFunc(slices.Clone(settings.Projections), func(l vedette.Projection) bool {
		_, err := redact.New(redact.Config{}, []vedette.Projection{l}, nil)
		if err != nil {
			a.log.Warn("the server asks for fields that this agent can't lift; upgrade the agent", "kind", l.Kind.String(), "error", err)
		}
		return err != nil
	})
	return redact.New(a.agent.cfg.Redact, lifts, settings.Annotations)
}

// setAccountError notes what keeps all of a cluster's feeds from being live.
func (a *account) setAccountError(message string) {
	if message == "" {
		a.setState("reporting", nil)
		return
	}
	a.setState("reporting", errors.New(message))
}

// setState notes how the account is and tells the server. That may wait for the server,
// so others may look meanwhile.
func (a *account) setState(state string, err error) {
	a.reportMu.Lock()
	defer a.reportMu.Unlock()
	a.mu.Lock()
	a.state, a.err = state, err
	a.mu.Unlock()
	if state == "refused" {
		return // the server knows, it said so
	}
	message := ""
	if err != nil {
		message = err.Error()
	}
	a.agent.link.ReportAccountError(a.cfg.Name, message)
}

func (a *account) status() AccountStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := AccountStatus{Name: a.cfg.Name, State: a.state}
	if a.err != nil {
		s.Error = a.err.Error()
	}
	return s
}
