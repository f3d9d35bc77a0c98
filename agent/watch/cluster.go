package watch

import (
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
	UserAgent string // "vedette-agent" where empty
	Streams   int    // watches per connection; 40 where 0
	// Head is how long an API server may take to begin an answer that ends soon; 70 s
	// where 0: API servers give a request up after 60.
	Head time.Duration
	// Pause is how long it may be silent within such an answer, all pauses together,
	// with a second given back for each 4 KiB that come; 30 s where 0.
	Pause time.Duration
}

func (o Options) withDefaults() Options {
	o.UserAgent = firstOf(o.UserAgent, "vedette-agent")
	if o.Streams <= 0 {
		o.Streams = defaultStreams
	}
	if o.Head <= 0 {
		o.Head = headerTimeout
	}
	if o.Pause <= 0 {
		o.Pause = 30 * time.Second
	}
	return o
}

// Cluster is one API server as this agent may use it. It is safe for use by
// many at once.
type Cluster struct {
	cfg   *rest.Config
	base  *url.URL
	opts  Options
	stamp [sha256.Size]byte // of cfg and the files that it names

	exec *signIn            // nil where no program signs in
	end  context.CancelFunc // ends what runs for the cluster beside requests

	lanes lanes
	mu    sync.Mutex
	dial  *dialing
	bulk  http.RoundTripper // lists, discovery and all that ends soon
	close func()            // bulk's idle connections
	since time.Time         // when dial was made
	found discovered
	calls calls
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
	stamp, err := stampOf(cfg)
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, base: base, opts: opts, stamp: stamp}
	if err := c.prepareExec(); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read how the kubeconfig for %s signs in: %w", base, err)
	}
	c.lanes.most = opts.Streams
	c.lanes.open = c.openLane
	if err := c.dialAnew(); err != nil {
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
	c.end = cancel
	if c.cfg.ExecProvider == nil {
		return nil
	}
	p, err := programOf(c.cfg)
	c.exec = &signIn{ctx: ctx, run: p.run, rotated: c.renewNow}
	return err
}

// Close gives up idle connections, and ends a program that signs in. Requests under
// way end with their contexts.
func (c *Cluster) Close() {
	c.end()
	if c.exec != nil {
		c.exec.wait()
	}
	c.lanes.renew()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	c.calls.close()
}

// dialAnew builds the transports from the credentials as they are now.
func (c *Cluster) dialAnew() error {
	d, err := newDialing(c.cfg, c.exec)
	if err != nil {
		return err
	}
	base := d.transport(bulkWindow)
	rt, err := d.signed(base)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.close != nil {
		c.close()
	}
	c.dial, c.bulk, c.close, c.since = d, rt, base.CloseIdleConnections, time.Now()
	return nil
}

// renew makes new connections after the API server or we refused the other's
// certificate or token: files may have changed. Streams that are open stay. It
// does nothing where it was done within ten seconds.
func (c *Cluster) renew() {
	c.mu.Lock()
	fresh := time.Since(c.since) < 10*time.Second
	c.mu.Unlock()
	if !fresh {
		c.renewNow()
	}
}

func (c *Cluster) renewNow() {
	if c.dialAnew() == nil {
		c.lanes.renew()
	}
}

func (c *Cluster) dialed() *dialing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dial
}

func (c *Cluster) openLane() (*http.Transport, http.RoundTripper, error) {
	d := c.dialed()
	base := d.transport(watchWindow)
	rt, err := d.signed(base)
	return base, rt, err
}

// pageLimit is how many objects a list asks for at a time.
const pageLimit = 500

// The forms in which the API server is asked for things.
const (
	acceptJSON         = "application/json"
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// request is one GET.
type request struct {
	path   string
	query  url.Values
	accept string
	header http.Header // further ones; may be nil
}

func (c *Cluster) newRequest(ctx context.Context, r request) (*http.Request, error) {
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
func (c *Cluster) get(ctx context.Context, l limits, r request) (*http.Response, error) {
	return accepted(l.send(ctx, func(ctx context.Context) (*http.Response, error) {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		bulk := c.bulk
		c.mu.Unlock()
		return bulk.RoundTrip(req)
	}))
}

// watch sends a request whose answer lasts, over a lane. The caller closes the
// body, which leaves the lane.
func (c *Cluster) watch(ctx context.Context, l limits, r request) (*http.Response, error) {
	return accepted(l.send(ctx, func(ctx context.Context) (*http.Response, error) {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		return c.overLane(req)
	}))
}

func (c *Cluster) overLane(req *http.Request) (*http.Response, error) {
	ln, err := c.lanes.take()
	if err != nil {
		return nil, err
	}
	resp, err := ln.roundTrip(req)
	if err != nil {
		c.lanes.leave(ln)
		return nil, err
	}
	resp.Body = &laneBody{ReadCloser: resp.Body, leave: sync.OnceFunc(func() { c.lanes.leave(ln) })}
	return resp, nil
}

type laneBody struct {
	io.ReadCloser
	leave func()
}

func (b *laneBody) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}

// accepted passes on an answer that can be read, and reads one that says no.
func accepted(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readStatus(resp)
}
