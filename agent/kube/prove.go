package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
)

// Proof is an answer of the cluster over one connection. Whatever the API server had written into the
// connection before the answer has arrived before it.
type Proof struct {
	Sent     time.Time // when the request was sent; zero for no answer yet
	Answered time.Time
}

// Conn is a connection that carries watches and other requests beside them, which HTTP/1.1 cannot. It
// is safe for concurrent use.
type Conn struct {
	conn *singleConn

	mu       sync.Mutex
	last     Proof
	isProbed bool // a probe waits for its answer
}

// LastProof returns the newest proof.
func (c *Conn) LastProof() Proof {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// BeginProbe reports whether no probe waits for its answer, and takes it for begun. The caller then
// calls Cluster.Probe.
func (c *Conn) BeginProbe() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	begins := !c.isProbed
	c.isProbed = true
	return begins
}

func (c *Conn) endProbe(p Proof) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isProbed = false
	if p.Sent.After(c.last.Sent) {
		c.last = p
	}
}

// probeTimeout is how long a probe waits. An answer counts from when its request was sent, so a late
// one is worth little.
const probeTimeout = 15 * time.Second

// Probe asks the cluster for its identity over a connection. The API server reads it from etcd, so the answer also shows that the API
// server is not cut off from there. If the identity is hidden, Probe asks for one object of each of the lists in turn that paths names,
// until it gets an answer: RBAC denies from the memory of the API server, which shows nothing. An answer that a proxy can give by itself,
// such as 503, shows nothing either. paths is called only then.
func (c *Cluster) Probe(ctx context.Context, conn *Conn, paths func() []string) error {
	proof, err := c.probe(withPinnedConn(ctx, conn.conn), c.listTransport(), paths)
	conn.endProbe(proof)
	return err
}

// ProbeAny is Probe over any connection, for watches that have connections of their own.
func (c *Cluster) ProbeAny(ctx context.Context, paths func() []string) (Proof, error) {
	return c.probe(ctx, roundTripperFunc(c.roundTripProbe), paths)
}

func (c *Cluster) probe(ctx context.Context, rt http.RoundTripper, paths func() []string) (Proof, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	sent := time.Now()
	isHidden, err := c.checkConnIdentity(ctx, rt)
	if err == nil && isHidden {
		sent, err = c.readAnyList(ctx, rt, paths())
	}
	if err != nil {
		return Proof{}, err
	}
	return Proof{Sent: sent, Answered: time.Now()}, nil
}

// checkConnIdentity reads the identity over a connection, and reports whether it is hidden.
func (c *Cluster) checkConnIdentity(ctx context.Context, rt http.RoundTripper) (isHidden bool, err error) {
	expected, err := c.identity.expected()
	switch {
	case err != nil:
		return false, err
	case expected == nil: // it is not identified yet
		read, err := c.readNamespace(ctx, rt, systemNamespace)
		return read.uid == "", err
	case expected.UID == "":
		return true, nil
	}
	_, err = c.verify(ctx, rt)
	if errors.Is(err, errIdentityHidden) {
		return true, nil
	}
	return false, err
}

// ErrUnproven means that nothing that an account may read shows whether its API server reaches etcd.
var ErrUnproven = vedette.Errorf(vedette.Denied, "the account may not read the namespace kube-system, and no list of it can be used instead, so it is unknown "+
	"whether the API server reaches etcd, and how fresh the account is: allow the agent to get this namespace")

// readAnyList returns when it asked for the first list that was answered. An API server asks etcd before it answers a list without a
// version, also if it has the objects in memory.
func (c *Cluster) readAnyList(ctx context.Context, rt http.RoundTripper, paths []string) (sent time.Time, err error) {
	for _, path := range paths {
		sent = time.Now()
		err := c.readShortList(ctx, rt, path)
		if err == nil || !isRejection(err) {
			return sent, err
		}
	}
	return sent, ErrUnproven
}

// isRejection reports whether the API server answers, and not with what was asked for: then it may answer another request.
func isRejection(err error) bool {
	switch code := StatusCode(err); code {
	case http.StatusUnauthorized, http.StatusTooManyRequests: // as for all requests
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// readShortList reads the metadata of one object of a list.
func (c *Cluster) readShortList(ctx context.Context, rt http.RoundTripper, path string) error {
	r := GetRequest{Path: path, Query: url.Values{"limit": {"1"}}, Accept: AcceptMetadataList + "," + AcceptJSON}
	resp, err := checkStatus(c.Timeouts().send(ctx, func(ctx context.Context) (*http.Response, error) {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		return rt.RoundTrip(req)
	}))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := c.readDocument(ctx, resp.Body, &list); err != nil {
		return err
	}
	if list.Metadata.ResourceVersion == "" {
		return fmt.Errorf("%w: an answer that is not a list", jsonstream.ErrMalformed)
	}
	return nil
}

type connObserverKey struct{}

// withConnObserver returns a context whose request reports the connection that carries it.
func withConnObserver(ctx context.Context, observe func(*Conn)) context.Context {
	return context.WithValue(ctx, connObserverKey{}, observe)
}

// observeConn reports the connection of a response, if it carries other requests too.
func observeConn(ctx context.Context, c *singleConn, resp *http.Response) {
	if observe, ok := ctx.Value(connObserverKey{}).(func(*Conn)); ok && resp.ProtoMajor >= 2 {
		observe(c.proofs())
	}
}

// proofs returns the connection as others see it.
func (c *singleConn) proofs() *Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown == nil {
		c.shown = &Conn{conn: c}
	}
	return c.shown
}
