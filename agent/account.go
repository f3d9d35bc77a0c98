package agent

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/wire"
)

// account is one account of the agent, with these states:
//
//	reaching ──identified──> registered ──cacher──> reporting
//	                             │  ↑  ↑──standby──────┘
//	                             └──refused (registers again, with backoff)
//
// The states reaching and refused have a reason. They do not affect other accounts.
type account struct {
	agent   *Agent
	cfg     Account
	log     *slog.Logger
	indexes indexes
	// comparisons are questions about what the server stores.
	comparisons comparisons
	// Each of these holds a token while something waits.
	assignmentReady, propertiesChanged, rereadNow chan struct{}

	refusal  refusal    // owned by run
	reportMu sync.Mutex // held while a state is sent, so that states arrive in order

	mu         sync.Mutex
	identity   vedette.Cluster // of the last registration, and its namespaces
	namespaces []string
	properties vedette.Properties // of the latest configuration; those of cfg are of the first
	pending    *uplink.Assignment // the latest one, which replaces all before it
	operator   *operate.Operator  // nil until the cluster was reached
	operatorOf vedette.Cluster    // what the cluster of operator was identified as
	cluster    *kube.Cluster      // of operator
	watcher    *watch.Watcher     // the last one that ran; nil before the first
	feeds      *feedAnnouncements // of watcher
	state      string
	err        error // of the state; the two below count while the state is reporting
	// clusterErr is why the cluster as a whole cannot be read, and selectionErr what the
	// configuration asks for that the cluster does not serve.
	clusterErr, selectionErr error
	waitReason               string // why the account waits for other accounts; "" if it does not
}

func newAccount(a *Agent, cfg Account) *account {
	return &account{agent: a, cfg: cfg, log: a.log.With("account", cfg.Name), properties: cfg.Properties, state: "reaching",
		assignmentReady: make(chan struct{}, 1), propertiesChanged: make(chan struct{}, 1), rereadNow: make(chan struct{}, 1)}
}

// run serves the account until ctx ends. It starts over after the kubeconfig has changed, because the
// kubeconfig may lead to another cluster, and after the address did lead to another one.
func (a *account) run(ctx context.Context) {
	for ctx.Err() == nil {
		cluster, err := a.connect(ctx)
		if err != nil {
			return // ctx has ended
		}
		a.serveAndDeregister(ctx, cluster)
	}
}

func (a *account) serveAndDeregister(ctx context.Context, cluster *kube.Cluster) {
	defer cluster.Close()
	defer a.agent.link.Deregister(a.cfg.Name)
	defer a.agent.box.Forget(a.cfg.Name)
	a.serve(ctx, cluster)
}

// connect retries until the cluster is identified. It retries at once if the credentials may have
// changed.
func (a *account) connect(ctx context.Context) (*kube.Cluster, error) {
	retryBackoff, lastFailure := newBackoff(), ""
	for {
		cluster, err := a.connectOnce(ctx)
		if err == nil {
			return cluster, nil
		}
		if ctx.Err() == nil {
			a.setState("reaching", err)
			if failure := err.Error(); failure != lastFailure { // a failure may last for days
				lastFailure = failure
				a.log.Warn("cannot reach the cluster, retrying", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-a.rereadNow:
			retryBackoff.Reset()
		case <-time.After(retryBackoff.NextBackOff()):
		}
	}
}

func newBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = time.Second, 15*time.Second
	return b
}

func (a *account) connectOnce(ctx context.Context) (*kube.Cluster, error) {
	options := a.agent.cfg.ConnectOptions
	options.OnReconnect, options.Namespaces, options.Account = a.noteReconnect, a.cfg.Selection.Namespaces, string(a.cfg.Name)
	cluster, err := kube.Connect(a.cfg.Access, options)
	if err != nil {
		return nil, err
	}
	if err := a.identifyAndRegister(ctx, cluster); err != nil {
		cluster.Close()
		return nil, err
	}
	return cluster, nil
}

// identifyAndRegister identifies the cluster and registers the account.
func (a *account) identifyAndRegister(ctx context.Context, cluster *kube.Cluster) error {
	identity, namespaces, err := cluster.Identify(ctx)
	if err != nil {
		return err
	}
	if err := a.initOperator(cluster, identity); err != nil {
		return err
	}
	a.setState("registered", nil)
	return a.register(cluster, identity, namespaces)
}

// noteReconnect is called when watches of the account reach the same cluster over a new connection. The
// API server may have been restarted, or etcd restored, so the feeds are compared with the cluster.
func (a *account) noteReconnect() {
	a.log.Debug("reached the cluster over a new connection")
	if w := a.currentWatcher(); w != nil {
		w.VerifyAll()
	}
}

// logSwitched logs which clusters the address of the account has led to. Only the operators of the
// agent see the log.
func (a *account) logSwitched(cluster *kube.Cluster) {
	is, found := cluster.Identities()
	a.log.Warn("the address of the API server leads to another cluster, registering the account anew", "expected", is, "found", found)
}

func (a *account) register(cluster *kube.Cluster, identity vedette.Cluster, namespaces []string) error {
	a.mu.Lock()
	a.identity, a.operatorOf, a.namespaces = identity, identity, namespaces
	properties := a.properties
	a.mu.Unlock()
	properties.DefaultNamespace = cluster.Namespace()
	return a.agent.link.Register(vedette.Account{
		Name: a.cfg.Name, Cluster: identity, Properties: properties, Namespaces: namespaces,
		Shape: projectionHash(a.agent.cfg.Redact, a.cfg.Selection),
	})
}

// setAssignment stores the decision of the server. It does not block.
func (a *account) setAssignment(as uplink.Assignment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending = &as
	notify(a.assignmentReady)
}

func (a *account) takeAssignment() *uplink.Assignment {
	a.mu.Lock()
	defer a.mu.Unlock()
	as := a.pending
	a.pending = nil
	return as
}

// serve follows the assignments of the server until ctx ends, changed credentials may lead to another
// cluster, or the address does.
func (a *account) serve(ctx context.Context, cluster *kube.Cluster) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reconnect := make(chan struct{})
	go func() {
		defer close(reconnect)
		(&credentialFollower{account: a, cluster: cluster}).run(ctx)
	}()
	defer func() { cancel(); <-reconnect }()
	var r *watchRun
	defer func() { r.stop() }()
	retryTimer, retryBackoff := time.NewTimer(time.Hour), newBackoff()
	retryTimer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reconnect:
			return
		case <-cluster.Switched():
			a.logSwitched(cluster)
			return
		case <-a.propertiesChanged:
			a.registerProperties(cluster)
		case <-r.ended():
			a.log.Error("watcher failed, restarting", "error", r.err)
			r.stop()
			r = nil
			a.agent.link.Deregister(a.cfg.Name) // no one watches the cluster meanwhile
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

// registerProperties registers the account again with its new properties. The server answers with
// the marks that it has, so that the feeds go on.
func (a *account) registerProperties(cluster *kube.Cluster) {
	identity, namespaces := a.registration()
	if err := a.register(cluster, identity, namespaces); err != nil {
		a.log.Error("cannot register the new properties of the account", "error", err)
	}
}

func (a *account) reregister(ctx context.Context, cluster *kube.Cluster) error {
	identity, namespaces, err := cluster.Identify(ctx)
	if err != nil {
		a.setState("reaching", err)
		return err
	}
	return a.register(cluster, identity, namespaces)
}

// handleNonCacherRole records that this agent does not report the account, and reports
// whether to register again later.
func (a *account) handleNonCacherRole(as uplink.Assignment) bool {
	if as.Role != wire.Assignment_ROLE_REFUSED {
		a.setState("standby", nil)
		return false
	}
	a.setState("refused", errors.New(as.Message))
	if a.refusal.shouldLog(as.Message, time.Now()) {
		a.log.Warn("the server refused the account, retrying later", "reason", as.Message)
	}
	return true
}

// refusal is what was logged last about the server refusing the account. The account registers again
// every few seconds, for as long as an operator needs.
type refusal struct {
	reason string
	logged time.Time
}

// shouldLog reports whether to log a refusal: a reason that has changed, or the same one once a minute.
func (r *refusal) shouldLog(reason string, now time.Time) bool {
	if reason == r.reason && now.Sub(r.logged) < time.Minute {
		return false
	}
	r.reason, r.logged = reason, now
	return true
}

// watchRun is a running watcher.
type watchRun struct {
	watcher       *watch.Watcher
	announcements feedAnnouncements
	settings      uplink.ServerSettings
	cancel        context.CancelFunc
	done          chan struct{}
	err           error // after done
}

// ended returns a channel that is closed when the watcher has ended by itself. It returns
// nil, which is never ready, if r is nil.
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

// ensureWatching makes the account report in the term of the assignment. It keeps a running
// watcher if the outbox can continue from the marks of the server, so that a lost
// connection to the server costs the API server nothing. It does nothing if the assignment is outdated: another one
// follows.
func (a *account) ensureWatching(ctx context.Context, cluster *kube.Cluster, r *watchRun, as uplink.Assignment) *watchRun {
	settings := a.agent.serverSettings()
	if r != nil && !reflect.DeepEqual(r.settings, settings) {
		r.stop()
		a.agent.box.Forget(a.cfg.Name)
		r = nil
	}
	restart, isCurrent := a.agent.box.Open(a.cfg.Name, as.Term, as.Marks)
	if !isCurrent {
		return r
	}
	a.comparisons.abandon()
	a.setState("reporting", nil)
	if r == nil {
		return a.startWatching(ctx, cluster, settings, as)
	}
	if err := r.announcements.resend(ctx); err != nil {
		return r // ctx has ended
	}
	for feed, mark := range restart {
		if !r.watcher.Reset(feed, mark) {
			a.agent.box.ResumeFeed(a.cfg.Name, feed, mark) // for a later watch
		}
	}
	return r
}

func (a *account) startWatching(ctx context.Context, cluster *kube.Cluster, settings uplink.ServerSettings,
	as uplink.Assignment) *watchRun {
	ctx, cancel := context.WithCancel(ctx)
	r := &watchRun{settings: settings, cancel: cancel, done: make(chan struct{}),
		announcements: feedAnnouncements{box: a.agent.box, account: a.cfg.Name}}
	redactor, err := a.agent.redactorFor(settings)
	if err != nil {
		r.err = err
		close(r.done)
		return r
	}
	a.setClusterError(nil)
	a.setSelectionError(nil)
	a.setWaitReason("")
	watchConfig := a.agent.cfg.Watch
	watchConfig.Log = watchConfig.Log.With("account", a.cfg.Name)
	if settings.Verifies {
		watchConfig.Comparer = &comparer{account: a.cfg.Name, box: a.agent.box, comparisons: &a.comparisons}
	}
	selection := a.cfg.Selection
	selection.DefaultKinds = settings.Kinds
	r.watcher = watch.NewWatcher(cluster, selection, &sink{
		account: a.cfg.Name, box: a.agent.box, redactor: redactor, indexes: &a.indexes, announcements: &r.announcements,
		setClusterError: a.setClusterError, setSelectionError: a.setSelectionError, setWaitReason: a.setWaitReason,
		metrics: a.agent.cfg.Metrics,
		log:     a.log, snapshots: map[vedette.Feed]*index{},
	}, watchConfig)
	a.setWatcher(r.watcher, &r.announcements, redactor)
	go func() {
		defer close(r.done)
		r.err = r.watcher.Run(ctx, as.Marks)
	}()
	return r
}

// setClusterError sets the reason why the cluster as a whole cannot be read; nil clears it.
func (a *account) setClusterError(err error) {
	a.update(func() { a.clusterErr = err })
}

// setWaitReason sets why the account waits for other accounts; "" clears it.
func (a *account) setWaitReason(reason string) {
	a.update(func() { a.waitReason = reason })
}

// setSelectionError sets what the configuration asks for that is not watched; nil clears it.
func (a *account) setSelectionError(err error) {
	a.update(func() { a.selectionErr = err })
}

func (a *account) setState(state string, err error) {
	a.update(func() { a.state, a.err = state, err })
}

// update changes the state of the account and sends its error to the server. Sending may
// block, so mu is not held meanwhile and status does not wait.
func (a *account) update(change func()) {
	a.reportMu.Lock()
	defer a.reportMu.Unlock()
	a.mu.Lock()
	change()
	state, err := a.state, a.errorLocked()
	a.mu.Unlock()
	if state == "refused" {
		return // the server decided it
	}
	a.agent.link.ReportAccountError(a.cfg.Name, err)
}

// errorLocked returns what prevents the agent from reporting the account, or all of it. If nothing is
// wrong and the account waits for others, its kind is Waiting.
func (a *account) errorLocked() error {
	switch {
	case a.state != "reporting":
		return a.err
	case a.clusterErr != nil:
		return a.clusterErr
	case a.selectionErr != nil:
		return a.selectionErr
	case a.waitReason != "":
		return vedette.Errorf(vedette.Waiting, "%s", a.waitReason)
	}
	return nil
}

func (a *account) status() AccountStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := AccountStatus{Name: a.cfg.Name, State: a.state}
	if err := a.errorLocked(); err != nil {
		s.Error, s.waiting = err.Error(), vedette.KindOf(err) == vedette.Waiting
	}
	return s
}
