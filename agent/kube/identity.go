package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
)

// ErrAnotherCluster means that the address of an API server leads to another cluster than before, or to
// one that cannot be distinguished from another. Nothing was sent to it but requests for its identity.
var ErrAnotherCluster = errors.New("the address of the API server leads to another cluster than before")

// errIdentityHidden means that the uid of a cluster was readable, and is not anymore.
var errIdentityHidden = vedette.Errorf(vedette.Denied, "the account may not read the namespace kube-system anymore, whose uid shows that a new connection "+
	"leads to the same cluster as before: allow the agent to get this namespace")

// identity is what a Cluster was identified as, and what was found instead of it later.
type identity struct {
	switched chan struct{} // closed when found is set

	mu          sync.Mutex
	is          *vedette.Cluster // nil before Identify; never changed
	witness     *witness         // nil if the uid is known, or nothing else shows the cluster
	found       *vedette.Cluster // another cluster; nil for none
	watched     bool             // watches had a connection
	fingerprint string           // of the last connection
	changed     bool             // fingerprint, since the last connection of watches
}

func newIdentity() identity { return identity{switched: make(chan struct{})} }

// expected returns what the cluster behind a connection must be; nil before it is identified. It fails
// after another cluster was found: there may be two clusters behind the address, and nobody knows which
// of them comes next.
func (i *identity) expected() (*vedette.Cluster, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found != nil {
		return nil, anotherClusterError()
	}
	return i.is, nil
}

// set sets what the cluster is, once. It returns what it is, and whether this was the first time.
func (i *identity) set(id vedette.Cluster, w *witness) (is *vedette.Cluster, isFirst bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	isFirst = i.is == nil
	if isFirst {
		i.is = &id
		i.witness = w
		i.fingerprint = id.Fingerprint
	}
	return i.is, isFirst
}

// compare returns nil if a cluster is the one that was identified. It is stricter than Cluster.Same: a
// uid that is hidden now is not taken for the one that was read, because one certificate may stand
// before several clusters. A witness stands for the certificate of a cluster whose uid was hidden,
// because several API servers may have certificates of their own.
func (i *identity) compare(found vedette.Cluster, hasWitness bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.found != nil:
		return anotherClusterError()
	case i.is.UID != "" && found.UID == "":
		return errIdentityHidden
	case i.is.UID != "" && i.is.UID == found.UID, i.is.UID == "" && (i.is.Fingerprint == found.Fingerprint || hasWitness):
		i.changed = i.changed || i.fingerprint != found.Fingerprint
		i.fingerprint = found.Fingerprint
		return nil
	}
	i.found = &found
	close(i.switched)
	return anotherClusterError()
}

// isReconnect reports whether a new connection of watches replaces a lost one, or shows another
// certificate than the last.
func (i *identity) isReconnect(othersConnected bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	reconnected := i.watched && !othersConnected || i.changed
	i.watched, i.changed = true, false
	return reconnected
}

// anotherClusterError names no cluster, because everyone who reads accounts may read it. The agent's log
// names both.
func anotherClusterError() error {
	return vedette.Errorf(vedette.Conflict, "%w; nothing was done there. The agent registers the account anew", ErrAnotherCluster)
}

// Switched returns a channel that is closed when the address leads to another cluster than the one that
// was identified. All requests fail from then on.
func (c *Cluster) Switched() <-chan struct{} { return c.identity.switched }

// Identities returns the cluster that was identified, and the other one that was found later. Each is
// nil if there is none.
func (c *Cluster) Identities() (is, found *vedette.Cluster) {
	c.identity.mu.Lock()
	defer c.identity.mu.Unlock()
	return c.identity.is, c.identity.found
}

// systemNamespace is the request for the object whose uid identifies a cluster.
var systemNamespace = namespaceRequest("kube-system")

func namespaceRequest(name string) GetRequest {
	return GetRequest{Path: "/api/v1/namespaces/" + name, Accept: AcceptMetadata}
}

// maxIdentityBytes bounds the metadata of a namespace, whose annotations have 256 KiB at most.
const maxIdentityBytes = 1 << 20

// verify reads the identity of the cluster over rt, and compares it with what it was identified as. It
// also returns whether the connection carries one request at a time.
func (c *Cluster) verify(ctx context.Context, rt http.RoundTripper) (isHTTP1 bool, err error) {
	system, err := c.readNamespace(ctx, rt, systemNamespace)
	if err != nil {
		return false, err
	}
	found := vedette.Cluster{UID: system.uid, Host: c.Host(), Fingerprint: system.fingerprint}
	hasWitness := false
	if w := c.identity.neededWitness(found); w != nil {
		found, err := c.readNamespace(ctx, rt, namespaceRequest(w.namespace))
		if err != nil {
			return false, err
		}
		hasWitness = found.uid == w.uid
	}
	return system.isHTTP1, c.identity.compare(found, hasWitness)
}

// namespaceResponse is what the response to a request for a namespace shows.
type namespaceResponse struct {
	uid         string // "" if it is hidden
	fingerprint string // of the certificate
	isHTTP1     bool
}

// readNamespace reads the uid of a namespace over rt.
func (c *Cluster) readNamespace(ctx context.Context, rt http.RoundTripper, r GetRequest) (read namespaceResponse, err error) {
	resp, err := c.Timeouts().send(ctx, func(ctx context.Context) (*http.Response, error) {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		return rt.RoundTrip(req)
	})
	if err != nil {
		return read, err
	}
	defer resp.Body.Close()
	read.fingerprint, read.isHTTP1 = fingerprint(resp.TLS), resp.ProtoMajor == 1
	if resp.StatusCode == http.StatusOK {
		read.uid, err = c.readUID(ctx, resp.Body)
	} else if err = readStatus(resp); isHidden(err) {
		err = nil
	}
	if err != nil {
		return read, err
	}
	// A connection of HTTP/1.1 can be used again if the body was read to its end.
	_, err = io.Copy(io.Discard, limitReader(resp.Body, maxIdentityBytes))
	return read, err
}

// witness is a namespace whose uid shows that a connection leads to the same cluster, if that of
// kube-system is hidden. It says nothing to the server: other agents of the cluster may read another
// namespace.
type witness struct{ namespace, uid string }

// neededWitness returns the namespace that decides whether a cluster is the one that was identified; nil
// if its uid or its certificate decides.
func (i *identity) neededWitness(found vedette.Cluster) *witness {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.is.UID != "" || i.is.Fingerprint == found.Fingerprint {
		return nil
	}
	return i.witness
}

// findWitness returns the first of the account's namespaces that it may read; nil for none.
func (c *Cluster) findWitness(ctx context.Context) (*witness, error) {
	for _, namespace := range append(slices.Clone(c.opts.Namespaces[:min(len(c.opts.Namespaces), maxWitnesses)]), c.namespace) {
		read, err := c.readNamespace(ctx, c.listTransport(), namespaceRequest(namespace))
		if err != nil {
			return nil, err
		}
		if read.uid != "" {
			return &witness{namespace, read.uid}, nil
		}
	}
	return nil, nil //nolint:nilnil // most accounts may read kube-system
}

// maxWitnesses is how many of the account's namespaces are tried.
const maxWitnesses = 3

func (c *Cluster) readUID(ctx context.Context, body io.Reader) (string, error) {
	var ns struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	err := c.readDocument(ctx, body, &ns)
	if err == nil && ns.Metadata.UID == "" { // another document, which must not pass for an object that RBAC hides
		err = fmt.Errorf("%w: the document is without a uid, so it is not a namespace", jsonstream.ErrMalformed)
	}
	return truncate(ns.Metadata.UID, maxNameLength), err
}

func (c *Cluster) noteReconnect() {
	if c.opts.OnReconnect != nil {
		c.opts.OnReconnect()
	}
}

// CheckIdentity reads the identity over a connection that watches use. It notices a proxy that leads
// the requests of one connection to several clusters, credentials that are not accepted anymore, and, by
// a new connection, an address that DNS resolves to other machines. Before the cluster is identified it
// only notices the credentials.
func (c *Cluster) CheckIdentity(ctx context.Context) error {
	expected, err := c.identity.expected()
	if err != nil {
		return err
	}
	if c.hasMoved(ctx) {
		c.reloadCredentialsNow() // so that all requests use new connections
	}
	if expected == nil || expected.UID == "" {
		resp, err := c.get(ctx, c.Timeouts(), GetRequest{Path: "/version", Accept: AcceptJSON}, c.roundTripProbe)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, _ = io.CopyN(io.Discard, resp.Body, maxIdentityBytes) // so that the connection can be used again
		return nil
	}
	_, err = c.verify(ctx, roundTripperFunc(c.roundTripProbe))
	if errors.Is(err, errIdentityHidden) {
		return nil // new connections fail, and say why
	}
	return err
}

// roundTripProbe sends a request over a connection of watches, or, if they may have no other one, over one
// of lists.
func (c *Cluster) roundTripProbe(req *http.Request) (*http.Response, error) {
	resp, err := c.roundTripPooled(req)
	if errors.Is(err, ErrTooManyWatches) {
		return c.listTransport().RoundTrip(req)
	}
	return resp, err
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
