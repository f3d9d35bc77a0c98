package watch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette"
)

// Options are how to talk to clusters. The zero value works.
type Options struct {
	UserAgent      string // "vedette-agent" where empty
	StreamsPerConn int    // watches per connection; 40 where 0
	// HeaderTimeout is how long an API server may take to begin an answer that ends soon; 70 s
	// where 0: API servers give a request up after 60.
	HeaderTimeout time.Duration
	// ProgressTimeout is how long it may be silent within such an answer, all pauses together,
	// with a second given back for each 4 KiB that come; 30 s where 0.
	ProgressTimeout time.Duration
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

// Cluster is one API server as this agent may use it. It is safe for use by
// many at once.
type Cluster struct {
	cfg          *rest.Config
	base         *url.URL
	opts         Options
	accessDigest [sha256.Size]byte // of cfg and the files that it names

	exec   *execAuthenticator // nil where no program signs in
	cancel context.CancelFunc // ends what runs for the cluster beside requests

	conns          connPool
	mu             sync.Mutex
	connConfig     *connConfig
	listTransport  http.RoundTripper // lists, discovery and all that ends soon
	closeIdle      func()            // bulk's idle connections
	builtAt        time.Time         // when dial was made
	discoveryCache discoveryCache
	interactive    interactiveTransport
}

// Connect reads the credentials and builds the transports. It does not dial:
// Identify tells whether the cluster can be reached.
func Connect(a Access, opts Options) (*Cluster, error) {
	cfg, err := a.restConfig()
	if err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	cfg.UserAgent = opts.UserAgent
	base, err := baseURL(cfg)
	if err != nil {
		return nil, err
	}
	digest, err := digestAccess(cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, base: base, opts: opts, accessDigest: digest}
	if err := c.prepareExec(); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read how the kubeconfig for %s signs in: %w", base, err)
	}
	c.conns.maxStreams = opts.StreamsPerConn
	c.conns.newTransport = c.newConnTransport
	if err := c.rebuildTransports(); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "use the credentials for %s: %w", base, err)
	}
	return c, nil
}

func baseURL(cfg *rest.Config) (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the kubeconfig's server %q is no address: %w", cfg.Host, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return base, nil
}

// Host returns the address of the API server, "https://10.0.0.1:6443".
func (c *Cluster) Host() string { return c.base.String() }

// prepareExec prepares to run the kubeconfig's program, where there is one.
func (c *Cluster) prepareExec() error {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	if c.cfg.ExecProvider == nil {
		return nil
	}
	p, err := newExecPlugin(c.cfg)
	c.exec = &execAuthenticator{ctx: ctx, run: p.run, onRotate: c.reloadCredentialsNow}
	return err
}

// Close gives up idle connections, and ends a program that signs in. Requests under
// way end with their contexts.
func (c *Cluster) Close() {
	c.cancel()
	if c.exec != nil {
		c.exec.wait()
	}
	c.conns.retireAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeIdle()
	c.interactive.close()
}

// rebuildTransports builds the transports from the credentials as they are now.
func (c *Cluster) rebuildTransports() error {
	d, err := newConnConfig(c.cfg, c.exec)
	if err != nil {
		return err
	}
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

// reloadCredentials makes new connections after the API server or we refused the other's
// certificate or token: files may have changed. Streams that are open stay. It
// does nothing where it was done within ten seconds.
func (c *Cluster) reloadCredentials() {
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

// defaultPageSize is how many objects a list asks for at a time.
const defaultPageSize = 500

// The forms in which the API server is asked for things.
const (
	acceptJSON         = "application/json"
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// getRequest is one GET.
type getRequest struct {
	path   string
	query  url.Values
	accept string
	header http.Header // further ones; may be nil
}

func (c *Cluster) newRequest(ctx context.Context, r getRequest) (*http.Request, error) {
	u := *c.base
	u.Path += r.path
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", r.accept)
	return req, nil
}

// get sends a request that ends soon. Any answer but 200 and 304 is a
// *statusError. The caller closes the body.
func (c *Cluster) get(ctx context.Context, l timeouts, r getRequest) (*http.Response, error) {
	return checkStatus(l.send(ctx, func(ctx context.Context) (*http.Response, error) {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		transport := c.listTransport
		c.mu.Unlock()
		return transport.RoundTrip(req)
	}))
}

// watch sends a request whose answer lasts, over a lane. The caller closes the
// body, which leaves the lane.
func (c *Cluster) watch(ctx context.Context, l timeouts, r getRequest) (*http.Response, error) {
	return checkStatus(l.send(ctx, func(ctx context.Context) (*http.Response, error) {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		return c.roundTripPooled(req)
	}))
}

func (c *Cluster) roundTripPooled(req *http.Request) (*http.Response, error) {
	conn, err := c.conns.acquire()
	if err != nil {
		return nil, err
	}
	resp, err := conn.roundTrip(req)
	if err != nil {
		c.conns.release(conn)
		return nil, err
	}
	resp.Body = &pooledBody{ReadCloser: resp.Body, release: sync.OnceFunc(func() { c.conns.release(conn) })}
	return resp, nil
}

type pooledBody struct {
	io.ReadCloser
	release func()
}

func (b *pooledBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// checkStatus passes on an answer that can be read, and reads one that says no.
func checkStatus(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readStatus(resp)
}
