package kube

import (
	"cmp"
	"context"
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
}

func (o Options) withDefaults() Options {
	o.UserAgent = cmp.Or(o.UserAgent, "vedette-agent")
	if o.StreamsPerConn <= 0 {
		o.StreamsPerConn = defaultStreams
	}
	if o.HeaderTimeout <= 0 {
		o.HeaderTimeout = headerTimeout
	}
	if o.ProgressTimeout <= 0 {
		o.ProgressTimeout = 30 * time.Second
	}
	return o
}

// Cluster is a client of one API server. It is safe for concurrent use.
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
	listTransport  http.RoundTripper // for lists, discovery and other responses that end soon
	closeIdle      func()            // closes the idle connections of listTransport
	builtAt        time.Time         // when connConfig was built
	discoveryCache discoveryCache
	interactive    interactiveTransport
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
	c := &Cluster{base: base, namespace: namespace, opts: opts.withDefaults()}
	if opts.WipeTLSBuffers {
		c.wipe = newTLSWiper()
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.conns.maxStreams = c.opts.StreamsPerConn
	c.conns.newTransport = c.newConnTransport
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
		exec.wait()
	}
	c.conns.retireAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdle()
	c.interactive.close()
}

// rebuildTransports builds the transports from the current credentials.
func (c *Cluster) rebuildTransports() error {
	used := c.usedAccess()
	d, err := newConnConfig(used.cfg, used.exec)
	if err != nil {
		return err
	}
	d.onResponse = c.opts.OnResponse
	base := d.transport(requestWindow)
	rt, err := d.withAuth(base)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeIdle != nil {
		c.closeIdle()
	}
	c.connConfig, c.listTransport, c.closeIdle, c.builtAt = d, rt, base.CloseIdleConnections, time.Now()
	return nil
}

// ReloadCredentials reads the credentials again and opens new connections. Callers
// use it after either side rejected the other's certificate or token, because files
// may have been renewed. Open streams stay. A call within ten seconds of the last
// reload does nothing, so that many failing feeds reload once.
func (c *Cluster) ReloadCredentials() {
	c.mu.Lock()
	fresh := time.Since(c.builtAt) < 10*time.Second
	c.mu.Unlock()
	if !fresh {
		c.reloadCredentialsNow()
	}
}

func (c *Cluster) reloadCredentialsNow() {
	if c.rebuildTransports() == nil {
		c.conns.retireAll()
	}
}

func (c *Cluster) currentConnConfig() *connConfig {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connConfig
}

func (c *Cluster) newConnTransport() (*http.Transport, http.RoundTripper, error) {
	d := c.currentConnConfig()
	base := d.transport(watchWindow)
	rt, err := d.withAuth(base)
	return base, rt, err
}
