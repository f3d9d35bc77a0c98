package discover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// KubernetesConfig configures a source that watches a cluster.
type KubernetesConfig struct {
	// ServicePrefix is what the names of the servers' Services begin with.
	ServicePrefix string
	// PortName is the name of the REST API's port in the Services.
	PortName string
	// Namespace of the Services; "" for that of the service account or of the kubeconfig's context.
	Namespace string
	// KubeconfigFile is a kubeconfig, whose current context is used; "" for the pod's service account.
	KubeconfigFile string
	// ServiceAccount is how the cluster of the pod is reached, without a kubeconfig.
	ServiceAccount ServiceAccount
	// SkipVerify accepts any certificate of the API server.
	SkipVerify bool
	// DomainName is that of the cluster for URLs with the DNS names of pods; "" for URLs with IP addresses.
	DomainName string
	// KeepRunning uses Fallback if rights are missing or the cluster has no servers. Otherwise Run fails then, if this is so from the start.
	KeepRunning bool
	// IsTLS reports whether servers serve REST with TLS.
	IsTLS bool
	// Fallback returns servers while rights are missing; it must not wait. Nil means none.
	Fallback func() []Server
	Log      *slog.Logger // nil discards the log

	timing timing // zero values mean the defaults
}

// timing are how long the API server may take. Each request has a deadline.
type timing struct {
	request time.Duration // for a request with a short answer
	list    time.Duration // for all pages of a list
	watch   time.Duration // how long a watch lasts at least, if nothing ends it
	idle    time.Duration // without any byte of a watch; API servers send a bookmark each minute
	lasting time.Duration // from which on a watch was of use, so that the next one begins without a pause
	pause   time.Duration // first pause after a failure
	review  time.Duration // until rights are asked for again
	empty   time.Duration // for which the first list may have no server
}

func (t timing) withDefaults() timing {
	for _, d := range []struct {
		of   *time.Duration
		with time.Duration
	}{
		{&t.request, 10 * time.Second}, {&t.list, time.Minute}, {&t.watch, 5 * time.Minute}, {&t.idle, 150 * time.Second},
		{&t.lasting, 5 * time.Second}, {&t.pause, 500 * time.Millisecond}, {&t.review, 5 * time.Minute}, {&t.empty, 30 * time.Second},
	} {
		if *d.of == 0 {
			*d.of = d.with
		}
	}
	return t
}

// maxPause is the longest pause after a failure, before jitter.
const maxPause = 30 * time.Second

// pageObjects is how many objects a page of a list has at most.
const pageObjects = 100

// Kubernetes is a source that watches the addresses of Services. After a failure, it keeps the last whole list, whose servers keep the time
// at which they were last updated.
type Kubernetes struct {
	cfg    KubernetesConfig
	naming func(namespace string) naming
	announcer

	current      atomic.Pointer[[]Server] // nil before the first whole list
	known        atomic.Pointer[time.Time]
	isFallenBack atomic.Bool

	// Only Run uses the following.
	access  *access
	plan    plan
	catalog catalog
	said    string          // the last failure that was logged
	pauses  backoff.BackOff // after failures
	none    *time.Timer     // until the list without servers ends Run; nil if it does not
	end     context.CancelCauseFunc
}

// NewKubernetes returns a source that watches a cluster.
func NewKubernetes(cfg KubernetesConfig) *Kubernetes {
	cfg.timing = cfg.timing.withDefaults()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	k := &Kubernetes{cfg: cfg}
	k.naming = func(namespace string) naming {
		n := naming{scheme: SchemeOf(cfg.IsTLS)}
		if cfg.DomainName != "" {
			n.domain = "." + namespace + ".pod." + cfg.DomainName
		}
		return n
	}
	return k
}

// Validate checks what can be checked without the cluster: the kubeconfig, if there is one.
func (c KubernetesConfig) Validate() error {
	if c.KubeconfigFile == "" {
		return nil
	}
	_, err := newAccess(c)
	return err
}

// Probe asks for the rights and lists the servers once. It returns what it has found.
func (c KubernetesConfig) Probe(ctx context.Context) (string, error) {
	k := NewKubernetes(c)
	for k.plan.next() != stepWatch {
		isList := k.plan.next() == stepList
		if err := k.do(ctx); err != nil && !(isList && k.plan.slicesAreMissing) { // then Endpoints are tried
			return "", err
		}
	}
	return fmt.Sprintf("%d servers in the %s of namespace %s", len(*k.current.Load()), k.plan.resource.name, k.access.namespace), nil
}

// Servers implements Source.
func (k *Kubernetes) Servers() []Server {
	current := k.current.Load()
	switch {
	case current != nil:
		return withTime(*current, *k.known.Load())
	case k.isFallenBack.Load() && k.cfg.Fallback != nil:
		if servers := k.cfg.Fallback(); servers != nil {
			return sorted(servers)
		}
	}
	return nil
}

// Changed implements Source.
func (k *Kubernetes) Changed() <-chan struct{} { return k.channel() }

// Run implements Source. It fails if rights are missing from the start, or if there are no servers for some time after it, unless
// KeepRunning is set. An API server that does not answer is asked again.
func (k *Kubernetes) Run(ctx context.Context) error {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	k.end = end
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = k.cfg.timing.pause, max(maxPause, k.cfg.timing.pause)
	k.pauses = pauses
	for {
		err := k.do(running)
		if ctx.Err() != nil {
			return nil
		}
		if cause := context.Cause(running); cause != nil {
			return cause
		}
		pause, err := k.after(err)
		if err != nil {
			return err
		}
		k.wait(running, pause)
	}
}

// wait waits for a time, or until ctx ends. It announces changes of the fallback meanwhile.
func (k *Kubernetes) wait(ctx context.Context, pause time.Duration) {
	if pause == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	if k.current.Load() == nil && k.isFallenBack.Load() {
		poll(ctx, k.Servers, k.announce)
	}
	<-ctx.Done()
}

// errShort is a watch that an API server ended soon.
var errShort = errors.New("the API server ended the watch at once")

// after returns how long to wait after a step, or the error that ends Run.
func (k *Kubernetes) after(err error) (time.Duration, error) {
	if err == nil {
		return 0, nil
	}
	pause := k.pauses.NextBackOff()
	isStart := k.current.Load() == nil
	if isPermanent(err) && isStart {
		if !k.cfg.KeepRunning {
			return 0, err
		}
		pause = k.cfg.timing.review/2 + rand.N(k.cfg.timing.review) //nolint:gosec // jitter
		if !k.isFallenBack.Swap(true) {
			k.announce()
		}
	}
	if text := err.Error(); text != k.said {
		k.said = text
		switch {
		case isPermanent(err) && isStart:
			k.cfg.Log.Warn("using the database's table of servers, because the cluster's cannot be read", "error", err, "again", pause)
		case errors.Is(err, errShort):
			k.cfg.Log.Debug("the watch of servers ended early", "again", pause)
		default:
			k.cfg.Log.Warn("servers are not watched: keeping the last list", "error", err, "again", pause)
		}
	}
	return pause, nil
}

// do does the next step.
func (k *Kubernetes) do(ctx context.Context) error {
	if k.access == nil {
		a, err := newAccess(k.cfg)
		if err != nil {
			return permanentError{err}
		}
		k.access = a
	}
	switch k.plan.next() {
	case stepChoose:
		r, err := k.access.choose(ctx, k.cfg.timing.request, k.plan.slicesAreMissing)
		if err != nil {
			return err
		}
		k.plan.chosen(r)
		return nil
	case stepList:
		return k.list(ctx)
	default:
		return k.watch(ctx)
	}
}

func (k *Kubernetes) selection() selection {
	return selection{k.access.namespace, k.cfg.ServicePrefix, k.cfg.PortName}
}

// list replaces the list by what the cluster has, if all of it can be read.
func (k *Kubernetes) list(ctx context.Context) error {
	began := time.Now()
	found, version, err := k.readAll(ctx)
	if err != nil {
		k.plan.failed(err)
		return fmt.Errorf("list %s in namespace %s: %w", k.plan.resource.nameOr(), k.access.namespace, err)
	}
	k.catalog = found
	k.plan.listed(version)
	k.publish(began)
	return nil
}

// nameOr returns the name of a resource that may have been given up.
func (r *resource) nameOr() string {
	if r == nil {
		return "EndpointSlices or Endpoints"
	}
	return r.name
}

// readAll reads all pages.
func (k *Kubernetes) readAll(ctx context.Context) (found catalog, version string, err error) {
	ctx, cancel := withTimeout(ctx, k.cfg.timing.list)
	defer cancel()
	r := k.plan.resource
	query := url.Values{"limit": {strconv.Itoa(pageObjects)}}
	for {
		response, err := k.access.send(ctx, http.MethodGet, r.path(k.access.namespace), query, nil)
		if err != nil {
			return found, "", err
		}
		p, err := readPage(response.Body, func(item []byte) error { return k.put(&found, r, item) })
		_ = response.Body.Close() // it was read
		switch {
		case ctx.Err() != nil:
			return found, "", k.access.unreachable(ctx, ctx.Err())
		case err != nil:
			return found, "", fmt.Errorf("read the answer: %w", err)
		case p.kind != r.listKind:
			return found, "", fmt.Errorf("the answer is of kind %.40q, not %s: check the address and proxies", p.kind, r.listKind)
		case !isVersion(p.metadata.ResourceVersion):
			return found, "", fmt.Errorf("the answer has no usable resourceVersion: check the address and proxies")
		}
		if p.metadata.Continue == "" {
			return found, p.metadata.ResourceVersion, nil
		}
		query.Set("continue", p.metadata.Continue)
	}
}

// isVersion reports whether a resourceVersion can be sent back. That of an object that was never stored is 0 or empty; a watch from it
// would begin anywhere.
func isVersion(version string) bool { return version != "" && version != "0" && len(version) <= 100 }

// put adds an object of a list or an event to a catalog. An object that cannot be decoded is left out.
func (k *Kubernetes) put(to *catalog, r *resource, document []byte) error {
	d, err := r.decode(document, k.selection())
	if err != nil {
		k.cfg.Log.Warn("an object with addresses of servers is left out", "kind", r.name, "namespace", k.access.namespace, "error", err)
		return nil
	}
	for _, remark := range d.remarks {
		k.cfg.Log.Warn("an object with addresses of servers has bad data", "kind", r.name, "namespace", k.access.namespace,
			"name", fmt.Sprintf("%.253q", d.metadata.Name), "error", remark)
	}
	return to.put(d.metadata.Name, d.object)
}

// publish makes the catalog the list, as it was known at a time.
func (k *Kubernetes) publish(known time.Time) {
	servers := k.catalog.servers(k.naming(k.access.namespace))
	k.known.Store(&known) // first, because Servers reads it if there is a list
	before := k.current.Load()
	if before == nil || !isSame(*before, servers) {
		k.current.Store(&servers)
		k.announce()
	}
	if before == nil {
		k.cfg.Log.Info("watching the servers", "servers", len(servers), "kind", k.plan.resource.name, "namespace", k.access.namespace,
			"prefix", k.cfg.ServicePrefix, "port", k.cfg.PortName)
	}
	if k.said != "" {
		k.cfg.Log.Info("the servers are watched again", "servers", len(servers))
		k.said = ""
	}
	k.expectServers(before == nil, len(servers))
}

// expectServers ends Run some time after the first list, if there has been no server.
func (k *Kubernetes) expectServers(isFirst bool, count int) {
	switch {
	case count > 0 && k.none != nil:
		k.none.Stop()
		k.none = nil
	case count == 0 && isFirst && k.end != nil:
		err := vedette.Errorf(vedette.NotFound, "find the servers: namespace %s has no Service with a name that begins with %q, a port named %q and a pod: "+
			"check kubesvc.cluster-kubernetes.clouddriverServiceNamePrefix, httpPortName and namespace, or set failFast to false",
			k.access.namespace, k.cfg.ServicePrefix, k.cfg.PortName)
		if k.cfg.KeepRunning {
			k.cfg.Log.Warn("there are no servers", "error", err)
			return
		}
		end := k.end
		k.none = time.AfterFunc(k.cfg.timing.empty, func() { end(permanentError{err}) })
	}
}

// watch follows the changes until the watch ends.
func (k *Kubernetes) watch(ctx context.Context) error {
	began := time.Now()
	version, err := k.follow(ctx, k.plan.version)
	lasted := time.Since(began) >= k.cfg.timing.lasting
	r := k.plan.resource
	k.plan.watched(version, lasted, err)
	if lasted {
		k.pauses.Reset() // only here: a list that succeeds may be followed by watches that do not
	}
	switch {
	case err != nil:
		return fmt.Errorf("watch %s in namespace %s: %w", r.name, k.access.namespace, err)
	case !lasted:
		return errShort
	}
	return nil
}

// follow applies the events of one watch, and returns the version up to which it has done so.
func (k *Kubernetes) follow(ctx context.Context, version string) (string, error) {
	// API servers end watches at a time that is asked for, so that connections move. Not all at once.
	lasts := k.cfg.timing.watch + rand.N(k.cfg.timing.watch) //nolint:gosec // jitter
	ctx, cancel := withTimeout(ctx, lasts+k.cfg.timing.request)
	defer cancel()
	idleContext, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	errIdle := fmt.Errorf("nothing came within %s", k.cfg.timing.idle)
	answer := time.AfterFunc(k.cfg.timing.request, func() { stop(fmt.Errorf("no answer within %s", k.cfg.timing.request)) })
	defer answer.Stop()
	seconds := max(1, int(lasts/time.Second))
	response, err := k.access.send(idleContext, http.MethodGet, k.plan.resource.path(k.access.namespace), url.Values{"watch": {"true"},
		"resourceVersion": {version}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(seconds)}}, nil)
	if err != nil {
		return version, err
	}
	defer response.Body.Close()
	if !answer.Stop() {
		return version, k.access.unreachable(idleContext, errIdle)
	}
	idle := time.AfterFunc(k.cfg.timing.idle, func() { stop(errIdle) })
	defer idle.Stop()
	body := &watchedReader{from: response.Body, idle: k.cfg.timing.idle, timer: idle, last: time.Now()}
	events := newDocuments(body)
	for {
		event, err := events.readEvent()
		switch {
		case errors.Is(err, io.EOF) && idleContext.Err() == nil:
			return version, nil
		case body.wasPaused, idleContext.Err() != nil:
			return version, k.access.unreachable(idleContext, errIdle)
		case err != nil:
			return version, k.access.unreachable(idleContext, err)
		}
		next, err := k.apply(event, body.last)
		if next != "" {
			version = next
		}
		if err != nil {
			return version, err
		}
	}
}

// watchedReader reads the body of a watch. It ends the watch if nothing comes for too long; a process that was paused for so long finds
// what was sent before, which is not the state of now.
type watchedReader struct {
	from      io.Reader
	idle      time.Duration
	timer     *time.Timer
	last      time.Time
	wasPaused bool
}

// Read implements io.Reader.
func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	now := time.Now()
	if now.Sub(r.last) > r.idle {
		r.wasPaused = true
		return 0, fmt.Errorf("nothing came within %s", r.idle)
	}
	r.last = now
	if r.timer.Stop() {
		r.timer.Reset(r.idle)
	}
	return n, err
}

// apply applies an event that arrived at a time, and returns the version after it; empty if it does not say it. What it cannot apply, a
// list shows: it says which objects there are.
func (k *Kubernetes) apply(event watchEvent, arrived time.Time) (string, error) {
	r := k.plan.resource
	switch event.kind {
	case "ERROR":
		return "", watchError(event.object)
	case "ADDED", "MODIFIED":
		if err := k.put(&k.catalog, r, event.object); err != nil {
			return "", errors.Join(errGone, err)
		}
	case "DELETED", "BOOKMARK":
	default:
		return "", fmt.Errorf("the watch sent an event of type %.40q", event.kind)
	}
	var head struct {
		Metadata metadata `json:"metadata"`
	}
	if err := exactjson.Unmarshal(event.object, &head, exactjson.Limits{Bytes: maxDecodedBytes}); err != nil {
		return "", fmt.Errorf("%w: read an event: %w", errGone, err)
	}
	isOurs := head.Metadata.Namespace == "" || head.Metadata.Namespace == k.access.namespace
	if event.kind == "DELETED" && isOurs {
		k.catalog.remove(head.Metadata.Name)
	}
	k.publish(arrived)
	if !isVersion(head.Metadata.ResourceVersion) {
		return "", nil
	}
	return head.Metadata.ResourceVersion, nil
}

// watchError returns the error that an event reports.
func watchError(object []byte) error {
	var s status
	if err := exactjson.Unmarshal(object, &s, exactjson.Limits{}); err != nil {
		return fmt.Errorf("read an error that the watch sent: %w", err)
	}
	if s.Code == http.StatusGone {
		return errGone
	}
	return &answerError{s.Code, s.Message}
}
