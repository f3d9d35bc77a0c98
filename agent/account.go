package agent

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/lifecycle"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/wire"
)

// account is one account of the agent. A lifecycle.Account decides what it does.
type account struct {
	agent   *Agent
	cfg     Account
	log     *slog.Logger
	indexes indexes
	// comparisons are questions about what the server stores.
	comparisons comparisons
	// Each of these holds a token while something waits.
	assignmentReady, propertiesChanged, rereadNow chan struct{}

	reportMu sync.Mutex // held while a state is sent, so that states arrive in order

	mu         sync.Mutex
	identity   vedette.Cluster // of the last registration, and its namespaces
	namespaces []string
	properties vedette.Properties // of the latest configuration; those of cfg are of the first
	pending    *uplink.Assignment // the latest one, which replaces all before it
	operator   *operate.Operator  // nil until the cluster was reached
	operatorOf vedette.Cluster    // what the cluster of operator was identified as
	cluster    *kube.Cluster      // of operator
	watcher    *watch.Watcher     // nil while this agent does not report the account
	feeds      *feedAnnouncements // of watcher
	state      lifecycle.State
	err        error // of the state; the two below count while the state is reporting
	// clusterErr is why the cluster as a whole cannot be read, and selectionErr what the
	// configuration asks for that the cluster does not serve.
	clusterErr, selectionErr error
	credentials              vedette.Condition // whether those in the files are in use; zero if nobody has looked
	validity                 vedette.Condition // whether those in use last; zero if nothing says when they end
	version                  vedette.Condition // whether the cluster's version was tested; zero if it was
	issuer                   string            // of the credentials; "" if they are in the kubeconfig, or in files that it names
	waitReason               string            // why the account waits for other accounts; "" if it does not
}

func newAccount(a *Agent, cfg Account) *account {
	return &account{agent: a, cfg: cfg, log: a.log.With("account", cfg.Name), properties: cfg.Properties, state: lifecycle.Reaching,
		assignmentReady: make(chan struct{}, 1), propertiesChanged: make(chan struct{}, 1), rereadNow: make(chan struct{}, 1)}
}

// run serves the account until ctx ends.
func (a *account) run(ctx context.Context) {
	r := accountRunner{account: a, life: lifecycle.New(), retryTimer: time.NewTimer(time.Hour), retryBackoff: newBackoff()}
	r.retryTimer.Stop()
	r.step(ctx, lifecycle.Started{})
	for ctx.Err() == nil {
		if e := r.next(ctx); e != nil {
			r.step(ctx, e)
		}
	}
	r.step(ctx, lifecycle.Stopped{})
}

// accountRunner executes what the life of an account asks for. It belongs to one goroutine.
type accountRunner struct {
	account      *account
	life         *lifecycle.Account
	retryTimer   *time.Timer
	retryBackoff *backoff.ExponentialBackOff
	connection   *connection       // nil while the cluster is not reached
	watch        *watchRun         // nil while nothing is watched
	assignment   uplink.Assignment // the last one
}

// connection is a cluster that was reached, and what looks whether its credentials have changed.
type connection struct {
	cluster   *kube.Cluster
	stop      context.CancelFunc
	reconnect chan struct{} // closed when changed credentials may lead to another cluster, or after stop
}

// next waits for an event; nil for none. Of a cluster that was not reached, only the time and new credentials count.
func (r *accountRunner) next(ctx context.Context) lifecycle.Event {
	a := r.account
	if r.connection == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-r.retryTimer.C:
			return lifecycle.RetryDue{}
		case <-a.rereadNow:
			return lifecycle.CredentialsMayHaveChanged{}
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.retryTimer.C:
		return lifecycle.RetryDue{}
	case <-r.connection.reconnect:
		return lifecycle.ClusterChanged{}
	case <-r.connection.cluster.Switched():
		a.logSwitched(r.connection.cluster)
		return lifecycle.ClusterChanged{}
	case <-a.propertiesChanged:
		return lifecycle.PropertiesChanged{}
	case <-r.watch.ended():
		return lifecycle.WatchFailed{Err: r.watch.err}
	case <-a.assignmentReady:
		return r.takeAssignment()
	}
}

func (r *accountRunner) takeAssignment() lifecycle.Event {
	as := r.account.takeAssignment()
	if as == nil {
		return nil
	}
	r.assignment = *as
	switch as.Role {
	case wire.Assignment_ROLE_CACHER:
		return lifecycle.Assigned{Role: lifecycle.RoleCacher}
	case wire.Assignment_ROLE_REFUSED:
		return lifecycle.Assigned{Role: lifecycle.RoleRefused, Reason: as.Message}
	}
	return lifecycle.Assigned{Role: lifecycle.RoleStandby}
}

// step handles an event, and executes what follows from it, also from what the effects answer.
func (r *accountRunner) step(ctx context.Context, e lifecycle.Event) {
	for events := []lifecycle.Event{e}; len(events) > 0; events = events[1:] {
		for _, effect := range r.life.Step(events[0], time.Now()) {
			if answer := r.execute(ctx, effect); answer != nil {
				events = append(events, answer)
			}
		}
	}
}

// execute executes an effect, and returns what it answers; nil for nothing.
func (r *accountRunner) execute(ctx context.Context, effect lifecycle.Effect) lifecycle.Event {
	a := r.account
	switch effect := effect.(type) {
	case lifecycle.Connect:
		return r.connect(ctx)
	case lifecycle.Identify:
		return r.identify(ctx)
	case lifecycle.Register:
		a.registerProperties(r.connection.cluster)
	case lifecycle.Watch:
		return r.startOrContinue(ctx)
	case lifecycle.StopWatching:
		r.watch.stop()
		r.watch = nil
		a.stopWatching()
	case lifecycle.Forget:
		a.agent.box.Forget(a.cfg.Name)
	case lifecycle.Deregister:
		a.agent.link.Deregister(a.cfg.Name)
	case lifecycle.Disconnect:
		r.disconnect()
	case lifecycle.Retry:
		r.retryTimer.Reset(r.retryBackoff.NextBackOff())
	case lifecycle.StopRetry:
		r.retryTimer.Stop()
	case lifecycle.ResetRetry:
		r.retryBackoff.Reset()
	case lifecycle.Report:
		a.setState(effect.State, effect.Err)
	case lifecycle.LogUnreachable:
		a.log.Warn("cannot reach the cluster, retrying", "error", effect.Err)
	case lifecycle.LogRefused:
		a.log.Warn("the server refused the account, retrying later", "reason", effect.Reason)
	case lifecycle.LogWatchFailed:
		a.log.Error("watcher failed, restarting", "error", effect.Err)
	}
	return nil
}

// connect reaches the cluster, and begins to look whether its credentials have changed.
func (r *accountRunner) connect(ctx context.Context) lifecycle.Event {
	cluster, err := r.account.connectOnce(ctx)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil
	case err != nil:
		return lifecycle.ConnectFailed{Err: err}
	}
	ctx, stop := context.WithCancel(ctx)
	c := &connection{cluster: cluster, stop: stop, reconnect: make(chan struct{})}
	go func() {
		defer close(c.reconnect)
		(&credentialReloader{account: r.account, cluster: cluster}).run(ctx)
	}()
	r.connection = c
	return lifecycle.Connected{}
}

func (r *accountRunner) disconnect() {
	a, c := r.account, r.connection
	c.stop()
	<-c.reconnect
	a.forgetConditions()
	a.agent.box.Forget(a.cfg.Name)
	a.agent.link.Deregister(a.cfg.Name)
	c.cluster.Close()
	r.connection = nil
}

func (r *accountRunner) identify(ctx context.Context) lifecycle.Event {
	identity, namespaces, err := r.connection.cluster.Identify(ctx)
	if err == nil {
		err = r.account.register(r.connection.cluster, identity, namespaces)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return lifecycle.ConnectFailed{Err: err}
	}
	return lifecycle.Connected{}
}

// startOrContinue reports the account in the term of the last assignment.
func (r *accountRunner) startOrContinue(ctx context.Context) (answer lifecycle.Event) {
	var isCurrent bool
	r.watch, isCurrent = r.account.ensureWatching(ctx, r.connection.cluster, r.watch, r.assignment)
	if !isCurrent {
		return nil
	}
	return lifecycle.Watching{}
}

func newBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = time.Second, 15*time.Second
	return b
}

func (a *account) connectOnce(ctx context.Context) (*kube.Cluster, error) {
	options := a.agent.cfg.ConnectOptions
	options.OnReconnect = a.noteReconnect
	options.Namespaces = a.cfg.Selection.Namespaces
	options.Account = string(a.cfg.Name)
	cluster, err := kube.Connect(a.cfg.Access, options)
	if err != nil {
		return nil, err
	}
	a.noteIssuer(cluster.Issuer())
	if err := a.identifyAndRegister(ctx, cluster); err != nil {
		cluster.Close()
		return nil, err
	}
	return cluster, nil
}

func (a *account) identifyAndRegister(ctx context.Context, cluster *kube.Cluster) error {
	identity, namespaces, err := cluster.Identify(ctx)
	if err != nil {
		return err
	}
	if err := a.initOperator(cluster, identity); err != nil {
		return err
	}
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
	a.identity = identity
	a.operatorOf = identity
	a.namespaces = namespaces
	properties := a.properties
	a.mu.Unlock()
	properties.DefaultNamespace = cluster.Namespace()
	err := a.agent.link.Register(vedette.Account{
		Name: a.cfg.Name, Cluster: identity, Properties: properties, Namespaces: namespaces,
		Shape: shapeOf(a.agent.cfg.Redact, a.cfg.Selection),
	})
	if err == nil {
		a.noteVersion(identity.Version)
	}
	return err
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

// registerProperties registers the account again with its new properties. The server answers with
// the marks that it has, so that the feeds go on.
func (a *account) registerProperties(cluster *kube.Cluster) {
	identity, namespaces := a.registration()
	if err := a.register(cluster, identity, namespaces); err != nil {
		a.log.Error("cannot register the new properties of the account", "error", err)
	}
}

// watchRun is a running watcher.
type watchRun struct {
	watcher       *watch.Watcher // nil if it could not begin
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
func (a *account) ensureWatching(ctx context.Context, cluster *kube.Cluster, r *watchRun, as uplink.Assignment) (
	run *watchRun, isCurrent bool) {
	settings := a.agent.serverSettings()
	if r != nil && !reflect.DeepEqual(r.settings, settings) {
		r.stop()
		a.agent.box.Forget(a.cfg.Name)
		r = nil
	}
	restart, isCurrent := a.agent.box.Open(a.cfg.Name, as.Term, as.Marks)
	if !isCurrent {
		return r, false
	}
	a.comparisons.abandon()
	if r == nil {
		return a.startWatching(ctx, cluster, settings, as), true
	}
	if r.watcher == nil { // it could not begin, and has ended, which is handled next
		return r, true
	}
	if err := r.announcements.resend(ctx); err != nil {
		return r, true // ctx has ended
	}
	for feed, mark := range restart {
		if !r.watcher.Reset(feed, mark) {
			a.agent.box.ResumeFeed(a.cfg.Name, feed, mark) // for a later watch
		}
	}
	return r, true
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
	watchConfig.OnFresh, watchConfig.ProofInterval = a.agent.link.SendHeartbeat, a.agent.link.ProofInterval
	if settings.Verifies {
		watchConfig.Comparer = &comparer{account: a.cfg.Name, box: a.agent.box, comparisons: &a.comparisons}
	}
	r.watcher = watch.NewWatcher(cluster, a.selection(settings), &recordWriter{
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

func (a *account) setState(state lifecycle.State, err error) {
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
	if state == lifecycle.Refused {
		err = nil // the server decided it, and what was wrong before does not count any more
	}
	a.agent.link.ReportAccountError(a.cfg.Name, err)
}

// errorLocked returns what prevents the agent from reporting the account, or all of it. If nothing is
// wrong and the account waits for others, its kind is Waiting.
func (a *account) errorLocked() error {
	switch {
	case a.state != lifecycle.Reporting:
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
	s := AccountStatus{Name: a.cfg.Name, State: string(a.state), Credentials: a.issuer}
	if err := a.errorLocked(); err != nil {
		s.Error, s.waiting = err.Error(), vedette.KindOf(err) == vedette.Waiting
	}
	return s
}
