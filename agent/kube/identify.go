package kube

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
)

// Identify returns the identity of the cluster and the names of its namespaces. The
// UID is empty and the namespaces are nil if RBAC hides them. From the first time on, the Cluster
// is that cluster: later calls fail with ErrAnotherCluster if they find another one.
func (c *Cluster) Identify(ctx context.Context) (vedette.Cluster, []string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, discoveryTimeout, errDiscoveryTimeout)
	defer cancel()
	id, err := c.identifyConn(ctx)
	if err != nil {
		return id, nil, err
	}
	namespaces, err := c.namespaces(ctx)
	if err != nil {
		return id, nil, fmt.Errorf("list namespaces: %w", c.Explain(causeOf(ctx, err)))
	}
	return id, namespaces, nil
}

// identifyConn reads the identity over a new connection. The first such connection is used by requests
// from then on.
func (c *Cluster) identifyConn(ctx context.Context) (vedette.Cluster, error) {
	c.hasMoved(ctx) // remembers the addresses from before the connection is opened
	transport := c.listTransport().conns
	conn := newSingleConn(transport.config, transport.window)
	pinned := withPinnedConn(ctx, conn)
	id, w, err := c.readIdentity(pinned)
	if err != nil {
		conn.close()
		return id, err
	}
	is, isFirst := c.identity.set(id, w)
	if isFirst {
		conn.cluster = is
		transport.add(conn)
		return id, nil
	}
	defer conn.close()
	_, err = c.verify(pinned, c.listTransport())
	return id, c.Explain(withoutNoConnection(err))
}

func (c *Cluster) readIdentity(ctx context.Context) (vedette.Cluster, *witness, error) {
	id, err := c.serverVersion(ctx)
	if err != nil {
		return id, nil, fmt.Errorf("identify the cluster: %w", c.Explain(withoutNoConnection(err)))
	}
	id.UID, err = c.clusterUID(ctx)
	if err != nil || id.UID != "" {
		return id, nil, c.wrapIdentity(err)
	}
	w, err := c.findWitness(ctx)
	return id, w, c.wrapIdentity(err)
}

func (c *Cluster) wrapIdentity(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read the uid of namespace kube-system: %w", c.Explain(withoutNoConnection(err)))
}

func (c *Cluster) serverVersion(ctx context.Context) (vedette.Cluster, error) {
	id := vedette.Cluster{Host: c.Host()}
	resp, err := c.Get(ctx, c.Timeouts(), GetRequest{Path: "/version", Accept: AcceptJSON})
	if err != nil {
		return id, err
	}
	defer resp.Body.Close()
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := c.readDocument(ctx, resp.Body, &v); err != nil {
		return id, err
	}
	id.Version, id.Fingerprint = truncate(v.GitVersion, maxNameLength), fingerprint(resp.TLS)
	return id, nil
}

// fingerprint returns the SHA-256 of the API server's certificate, as openssl prints it.
func fingerprint(state *tls.ConnectionState) string {
	if state == nil || len(state.PeerCertificates) == 0 {
		return ""
	}
	sum := sha256.Sum256(state.PeerCertificates[0].Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

func (c *Cluster) clusterUID(ctx context.Context) (string, error) {
	resp, err := c.Get(ctx, c.Timeouts(), systemNamespace)
	if isHidden(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return c.readUID(ctx, resp.Body)
}

// isHidden reports whether RBAC denies a read, or whether the object does not exist
// (virtual API servers may have no namespaces). The page of a proxy hides nothing.
func isHidden(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && (s.Code == http.StatusForbidden && s.IsStatus || s.IsNotFound())
}

// namespaces returns the names of all namespaces, or nil if they are hidden.
func (c *Cluster) namespaces(ctx context.Context) ([]string, error) {
	names := []string{}
	query := url.Values{"limit": {strconv.Itoa(namespacePageSize)}}
	for len(names) <= maxNamespaces {
		page, err := c.namespacePage(ctx, query, &names)
		if isHidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if page.Continue == "" {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
		if page.Continue == query.Get("continue") {
			return nil, ErrSamePage
		}
		query.Set("continue", page.Continue)
	}
	return nil, errTooManyNamespaces
}

const (
	// maxNamespaces bounds the namespaces of a cluster, because the agent sends them in one
	// message. Kubernetes is tested with 10,000.
	maxNamespaces = 20_000
	// namespacePageSize is how many namespaces the agent requests at a time.
	namespacePageSize = 500
	// maxNamespacePageBytes bounds a page of namespaces, each of which may have annotations
	// of 256 KiB. Only one namespace is kept in memory at a time.
	maxNamespacePageBytes = namespacePageSize * 300 << 10
	// maxNameLength is how long a name may be in Kubernetes.
	maxNameLength = 253
)

var errTooManyNamespaces = fmt.Errorf("%w: more than %d namespaces", jsonstream.ErrMalformed, maxNamespaces)

// ErrSamePage reports that the continue token of a page leads to the same page.
var ErrSamePage = fmt.Errorf("%w: a list whose next page is the same page", jsonstream.ErrMalformed)

func (c *Cluster) namespacePage(ctx context.Context, query url.Values, names *[]string) (jsonstream.ListMeta, error) {
	resp, err := c.Get(ctx, c.Timeouts(), GetRequest{Path: "/api/v1/namespaces", Query: query, Accept: AcceptMetadataList + "," + AcceptJSON})
	if err != nil {
		return jsonstream.ListMeta{}, err
	}
	defer resp.Body.Close()
	s := jsonstream.NewSplitter(limitReader(resp.Body, maxNamespacePageBytes), new(jsonstream.BufferPool),
		jsonstream.Options{Permit: c.ReadPermit(ctx, resp.Body, documentTimeout), FreeBuffer: freeDocumentBuffer})
	defer s.Close()
	return s.List(nil, func(raw []byte) error {
		m, err := jsonstream.ReadMeta(raw)
		if len(m.Name) > maxNameLength { // a valid name has 63 bytes at most
			return fmt.Errorf("%w: a namespace name of %d bytes", jsonstream.ErrMalformed, len(m.Name))
		}
		*names = append(*names, m.Name)
		if len(*names) > maxNamespaces {
			return errTooManyNamespaces
		}
		return err
	})
}
