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
	agent   *Agent
	cfg     Account
	log     *slog.Logger
	indexes indexes
	news    chan struct{} // holds a token while an assignment waits

	unusable error      // why credentials could not be read again, as last logged; owned by run
	telling  sync.Mutex // held while the server is told of the state, so that no news overtakes older news

	mu       sync.Mutex
	next     *uplink.Assignment // the latest; those before it are void
	operator *operate.Operator  // nil until the cluster was reached
	watcher  *watch.Watcher     // the last that reported; nil before it
	state    string
	err      error
}

func newAccount(a *Agent, cfg Account) *account {
	return &account{agent: a, cfg: cfg, log: a.log.With("account", cfg.Name), news: make(chan struct{}, 1), state: "reaching"}
}

// run serves the account until ctx ends. It begins anew where the kubeconfig has
// changed: another cluster may stand there now.
func (a *account) run(ctx context.Context) error {
	for ctx.Err() == nil {
		cluster, err := a.reach(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		a.serveAndLeave(ctx, cluster)
	}
	return nil
}

func (a *account) serveAndLeave(ctx context.Context, cluster *watch.Cluster) {
	defer cluster.Close()
	defer a.agent.link.Deregister(a.cfg.Name)
	defer a.agent.box.Forget(a.cfg.Name)
	a.serve(ctx, cluster)
}

// reach tries until the cluster has said who it is.
func (a *account) reach(ctx context.Context) (*watch.Cluster, error) {
	return backoff.Retry(ctx, func() (*watch.Cluster, error) {
		cluster, err := a.identify(ctx)
		if err != nil && ctx.Err() == nil {
			a.set("reaching", err)
			a.log.Warn("cluster can't be reached; tried again", "error", err)
		}
		return cluster, err
	}, backoff.WithBackOff(patient()), backoff.WithMaxElapsedTime(0))
}

func patient() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = time.Second, 15*time.Second
	return b
}

func (a *account) identify(ctx context.Context) (*watch.Cluster, error) {
	cluster, err := watch.Connect(a.cfg.Access, a.agent.cfg.Connect)
	if err != nil {
		return nil, err
	}
	if err := a.introduce(ctx, cluster); err != nil {
		cluster.Close()
		return nil, err
	}
	return cluster, nil
}

// introduce registers a cluster that can be reached.
func (a *account) introduce(ctx context.Context, cluster *watch.Cluster) error {
	identity, namespaces, err := cluster.Identify(ctx)
	if err != nil {
		return err
	}
	if err := a.employ(cluster); err != nil {
		return err
	}
	a.set("registered", nil)
	return a.register(identity, namespaces)
}

func (a *account) register(identity vedette.Cluster, namespaces []string) error {
	return a.agent.link.Register(vedette.Account{
		Name: a.cfg.Name, Cluster: identity, Properties: a.cfg.Properties, Namespaces: namespaces,
		Shape: shapeOf(a.agent.cfg.Redact, a.cfg.Selection),
	})
}

// assigned notes the server's decision. It does not wait.
func (a *account) assigned(as uplink.Assignment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = &as
	select {
	case a.news <- struct{}{}:
	default:
	}
}

func (a *account) takeAssignment() *uplink.Assignment {
	a.mu.Lock()
	defer a.mu.Unlock()
	as := a.next
	a.next = nil
	return as
}

// serve does what the server decides, until ctx ends or the cluster must be reached
// in another way.
func (a *account) serve(ctx context.Context, cluster *watch.Cluster) {
	reread := time.NewTicker(a.agent.cfg.Reread)
	defer reread.Stop()
	var r *report
	defer func() { r.stop() }()
	again, wait := time.NewTimer(time.Hour), patient()
	again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reread.C:
			if a.outdated(cluster) {
				return
			}
		case <-r.ended():
			a.log.Error("watching ended; begun anew", "error", r.err)
			r.stop()
			r = nil
			a.agent.link.Deregister(a.cfg.Name) // nobody follows the cluster meanwhile
			again.Reset(wait.NextBackOff())
		case <-again.C:
			if err := a.reregister(ctx, cluster); err != nil {
				again.Reset(wait.NextBackOff())
			}
		case <-a.news:
			as := a.takeAssignment()
			if as == nil {
				continue
			}
			if as.Role == wire.Assignment_ROLE_CACHER {
				wait.Reset()
				r = a.report(ctx, cluster, r, *as)
				continue
			}
			r.stop()
			r = nil
			a.agent.box.Forget(a.cfg.Name)
			if a.withdrawn(*as) {
				again.Reset(wait.NextBackOff())
			}
		}
	}
}

// outdated reports whether the cluster must be reached in another way. What can't be
// used changes nothing, and is logged once.
func (a *account) outdated(cluster *watch.Cluster) bool {
	changed, err := cluster.Outdated(a.cfg.Access)
	if err != nil && (a.unusable == nil || a.unusable.Error() != err.Error()) {
		a.log.Warn("credentials can't be read again; those that were read before go on", "error", err)
	}
	a.unusable = err
	if changed {
		a.log.Info("credentials have changed; the cluster is connected to anew")
	}
	return changed
}

func (a *account) reregister(ctx context.Context, cluster *watch.Cluster) error {
	identity, namespaces, err := cluster.Identify(ctx)
	if err != nil {
		a.set("reaching", err)
		return err
	}
	return a.register(identity, namespaces)
}

// withdrawn notes that the account is not this agent's to report, and says
// whether to ask again.
func (a *account) withdrawn(as uplink.Assignment) bool {
	if as.Role != wire.Assignment_ROLE_REFUSED {
		a.set("standby", nil)
		return false
	}
	a.set("refused", errors.New(as.Message))
	a.log.Warn("account refused by the server; asked again later", "reason", as.Message)
	return true
}

// report is a watcher that runs.
type report struct {
	watcher *watch.Watcher
	told    told
	terms   uplink.Terms
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // after done
}

// ended returns a channel that is closed when the watcher has ended by itself;
// nil, which is never ready, where there is none.
func (r *report) ended() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.done
}

func (r *report) stop() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}

// report makes the account report in the term it was given. A watcher that runs
// goes on where the outbox can go on from the server's marks, so that a lost
// connection costs the API server nothing.
func (a *account) report(ctx context.Context, cluster *watch.Cluster, r *report, as uplink.Assignment) *report {
	terms := a.agent.currentTerms()
	if r != nil && !reflect.DeepEqual(r.terms, terms) {
		r.stop()
		a.agent.box.Forget(a.cfg.Name)
		r = nil
	}
	restart := a.agent.box.Open(a.cfg.Name, as.Term, as.Marks)
	a.set("reporting", nil)
	if r == nil {
		return a.start(ctx, cluster, terms, as)
	}
	if err := r.told.again(ctx); err != nil {
		return r // ctx has ended
	}
	for feed, mark := range restart {
		if !r.watcher.Reset(feed, mark) {
			a.agent.box.Revive(a.cfg.Name, feed, mark) // for when it will be watched
		}
	}
	return r
}

func (a *account) start(ctx context.Context, cluster *watch.Cluster, terms uplink.Terms, as uplink.Assignment) *report {
	ctx, cancel := context.WithCancel(ctx)
	r := &report{terms: terms, cancel: cancel, done: make(chan struct{}), told: told{box: a.agent.box, account: a.cfg.Name}}
	redactor, err := a.redactor(terms)
	if err != nil {
		r.err = err
		close(r.done)
		return r
	}
	selection := a.cfg.Selection
	selection.Default = terms.Kinds
	r.watcher = watch.NewWatcher(cluster, selection, &sink{
		account: a.cfg.Name, box: a.agent.box, redactor: redactor, indexes: &a.indexes, told: &r.told, trouble: a.setTrouble,
		log: a.log, snapshots: map[vedette.Feed]*index{},
	}, a.agent.cfg.Watch)
	a.tellAlike(r.watcher, redactor)
	go func() {
		defer close(r.done)
		r.err = r.watcher.Run(ctx, as.Marks)
	}()
	return r
}

// redactor lifts what the server asks for, but for lifts in a syntax that this
// agent is too old for: their fields are missing then, and nothing else is.
func (a *account) redactor(terms uplink.Terms) (*redact.Redactor, error) {
	lifts := slices.DeleteFunc(slices.Clone(terms.Lifts), func(l vedette.Lift) bool {
		_, err := redact.New(redact.Config{}, []vedette.Lift{l}, nil)
		if err != nil {
			a.log.Warn("the server asks for fields that this agent can't lift; upgrade the agent", "kind", l.Kind.String(), "error", err)
		}
		return err != nil
	})
	return redact.New(a.agent.cfg.Redact, lifts, terms.Annotations)
}

// setTrouble notes what keeps all of a cluster's feeds from being live.
func (a *account) setTrouble(message string) {
	if message == "" {
		a.set("reporting", nil)
		return
	}
	a.set("reporting", errors.New(message))
}

// set notes how the account is and tells the server. That may wait for the server,
// so others may look meanwhile.
func (a *account) set(state string, err error) {
	a.telling.Lock()
	defer a.telling.Unlock()
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
	a.agent.link.Trouble(a.cfg.Name, message)
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
