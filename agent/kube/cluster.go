package kube

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette"
)

// Options configure the connections to a cluster. The zero value is valid.
type Options struct {
	UserAgent      string // "vedette-agent" if empty
	StreamsPerConn int    // watches per connection; 40 if 0
	// MaxHTTP1Watches bounds the watches of an API server that does not speak HTTP/2, because each
	// takes a connection; 1,024 if 0. Those of Secrets do not count.
	MaxHTTP1Watches int
	// HeaderTimeout is how long an API server may take to begin a response that ends
	// soon; 70 s if 0, because API servers abandon such requests after 60 s.
	HeaderTimeout time.Duration
	// ProgressTimeout bounds all pauses within such a response together; 30 s if 0. Each
	// 4 KiB of data give one second back.
	ProgressTimeout time.Duration
	// WipeTLSBuffers zeroes the buffers of crypto/tls that held the metadata of Secrets.
	// It relies on unexported fields of crypto/tls. If a Go release changes them, Secrets
	// are not read anymore (ErrCannotWipe).
	WipeTLSBuffers bool
	// OnResponse is called for each request, with the verb of Kubernetes, the status and the time
	// until the answer began. The status is 0 if there was no answer. It must not block; nil is for
	// none.
	OnResponse func(verb string, status int, took time.Duration)
	// OnReconnect is called after watches lost their connection, or the certificate changed, and a new
	// connection led to the same cluster: what was read before may be incomplete. It must not block;
	// nil is for none.
	OnReconnect func()
	// Namespaces are those that the account is restricted to. If the uid of kube-system is hidden, the uid
	// of one of them shows whether a new connection leads to the same cluster.
	Namespaces []string
	// ReadMemory bounds the read buffers of the account together with those of other accounts; nil for one of
	// this cluster.
	ReadMemory *ReadMemory
	Account    string // in ReadMemory
	// LookupHost resolves the host name of the API server; net.DefaultResolver.LookupHost if nil.
	LookupHost func(ctx context.Context, host string) ([]string, error)
}

func (o Options) withDefaults() Options {
	o.UserAgent = cmp.Or(o.UserAgent, "vedette-agent")
	if o.StreamsPerConn <= 0 {
		o.StreamsPerConn = defaultStreams
	}
	if o.MaxHTTP1Watches <= 0 {
		o.MaxHTTP1Watches = defaultHTTP1Watches
	}
	if o.HeaderTimeout <= 0 {
		o.HeaderTimeout = headerTimeout
	}
	if o.ProgressTimeout <= 0 {
		o.ProgressTimeout = 30 * time.Second
	}
	if o.ReadMemory == nil {
		o.ReadMemory = NewReadMemory()
	}
	if o.LookupHost == nil {
		o.LookupHost = net.DefaultResolver.LookupHost
	}
	return o
}

// Cluster is a client of one cluster behind the address of its API servers. Once it is identified, its
// requests reach no other cluster (see verifiedTransport). It is safe for concurrent use.
type Cluster struct {
	base      *url.URL
	namespace string // of objects without one
	opts      Options
	wipe      *tlsWiper // nil without Options.WipeTLSBuffers

	ctx    context.Context // ends the exec plugins
	cancel context.CancelFunc

	conns          connPool
	mu             sync.Mutex
	access         usedAccess
	connConfig     *connConfig
	lists          *authTransport // for lists, discovery and other responses that end soon; nil before the first
	builtAt        time.Time      // when connConfig was built
	attempts       int            // to build transports
	built          int            // the number of the attempt that built connConfig and lists
	discoveryCache discoveryCache
	interactive    interactiveTransport

	identity  identity
	addresses resolvedAddresses
}

// Connect reads the credentials and builds the transports. It does not dial: Identify
// reports whether the cluster can be reached. The caller must Close the Cluster.
func Connect(a Access, opts Options) (*Cluster, error) {
	cfg, namespace, err := a.restConfig()
	if err != nil {
		return nil, err
	}
	base, err := baseURL(cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{base: base, namespace: namespace, opts: opts.withDefaults(), identity: newIdentity()}
	if opts.WipeTLSBuffers {
		c.wipe = newTLSWiper()
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.conns.maxStreams, c.conns.maxHTTP1 = c.opts.StreamsPerConn, c.opts.MaxHTTP1Watches
	c.conns.newTransport = c.newWatchTransport
	used, err := c.prepareAccess(a, cfg)
	if err != nil {
		return nil, err
	}
	if err := c.useAccess(used); err != nil {
		return nil, err
	}
	return c, nil
}

func baseURL(cfg *rest.Config) (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil && strings.Contains(cfg.Host, "@") {
		return nil, vedette.Errorf(vedette.Invalid, "the kubeconfig's server is not an address (it is not shown, because it may contain a password)")
	}
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the kubeconfig's server %q is not an address: %w", cfg.Host, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return base, nil
}

// Host returns the address of the API server, for example "https://10.0.0.1:6443".
func (c *Cluster) Host() string { return c.base.String() }

// Namespace returns the namespace of objects without one: that of the kubeconfig's context,
// as for kubectl, or "default". It is "default" for a service account too, although kubectl
// would use the namespace of the agent's pod, where nothing but the agent belongs.
func (c *Cluster) Namespace() string { return c.namespace }

// Close closes idle connections and ends the exec plugin. Requests in flight end with
// their contexts.
func (c *Cluster) Close() {
	c.cancel()
	if exec := c.usedAccess().exec; exec != nil {
		exec.Wait()
	}
	c.conns.retireAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists.conns.CloseIdleConnections()
	c.interactive.close()
}

// transports are what requests use from some credentials on. Attempts to build them may overlap, because several requests notice
// that credentials are rejected while others rotate. The number of an attempt says when it began to read files.
type transports struct {
	attempt int
	access  usedAccess
	config  *connConfig
	lists   *authTransport
}

// beginAttempt returns the number of an attempt to build transports, and the credentials in use.
func (c *Cluster) beginAttempt() (attempt int, used usedAccess) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts++
	return c.attempts, c.access
}

func (c *Cluster) buildTransports(attempt int, used usedAccess) (transports, error) {
	d, err := newConnConfig(used.cfg, used.exec)
	if err != nil {
		return transports{}, err
	}
	d.onResponse = c.opts.OnResponse
	lists, err := c.newTransport(d, requestWindow)
	return transports{attempt, used, d, lists}, err
}

// installReloaded makes requests use transports that were built from the credentials in use, unless others were installed meanwhile that
// are newer: from other credentials, or by an attempt that has begun later.
func (c *Cluster) installReloaded(t transports) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.access.cfg == c.access.cfg && t.attempt > c.built {
		c.installLocked(t)
	}
}

func (c *Cluster) installLocked(t transports) {
	if c.lists != nil {
		c.lists.conns.CloseIdleConnections()
	}
	c.access = t.access
	c.connConfig = t.config
	c.lists = t.lists
	c.builtAt = time.Now()
	c.built = max(c.built, t.attempt)
}

// ReloadCredentials reads the token file again and opens new connections. Callers use it after
// either side rejected the other's certificate or token, because the token may have been renewed. Other
// files are left to Rotate, which verifies their content. Open streams stay. A call within ten
// seconds of the last reload does nothing, so that many failing feeds reload once.
func (c *Cluster) ReloadCredentials() {
	c.mu.Lock()
	fresh := time.Since(c.builtAt) < 10*time.Second
	c.mu.Unlock()
	if !fresh {
		c.reloadCredentialsNow()
	}
}

func (c *Cluster) reloadCredentialsNow() {
	t, err := c.buildTransports(c.beginAttempt())
	if err != nil {
		return
	}
	c.installReloaded(t)
	c.conns.retireAll()
}

func (c *Cluster) currentConnConfig() *connConfig {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connConfig
}

// authTransport adds the credentials to requests, and sends them over its connections.
type authTransport struct {
	http.RoundTripper
	conns *verifiedTransport
}

// newTransport returns a transport without connections.
func (c *Cluster) newTransport(d *connConfig, window int) (*authTransport, error) {
	conns := &verifiedTransport{config: d, window: window, identity: c.identity.expected, connecting: make(chan struct{}, 1)}
	t := &authTransport{conns: conns}
	conns.verify = func(ctx context.Context) (isHTTP1 bool, err error) { return c.verify(ctx, t) }
	var err error
	t.RoundTripper, err = d.withAuth(conns)
	return t, err
}

func (c *Cluster) newWatchTransport() (*authTransport, error) {
	t, err := c.newTransport(c.currentConnConfig(), WatchWindow)
	if err != nil {
		return nil, err
	}
	verify := t.conns.verify
	t.conns.verify = func(ctx context.Context) (bool, error) {
		isHTTP1, err := verify(ctx)
		if err == nil {
			err = c.conns.checkNewConn(isHTTP1)
		}
		if err == nil && c.identity.isReconnect(c.conns.isConnected()) {
			c.noteReconnect()
		}
		return isHTTP1, err
	}
	return t, nil
}
