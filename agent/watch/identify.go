package watch

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
)

// Identify asks a cluster who it is and which namespaces it has. The uid is
// empty and the namespaces are nil where RBAC hides them.
func (c *Cluster) Identify(ctx context.Context) (vedette.Cluster, []string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, discoveryTimeout, errDiscoveryTimeout)
	defer cancel()
	id, err := c.serverVersion(ctx)
	if err != nil {
		return id, nil, fmt.Errorf("identify the cluster: %w", c.explain(err))
	}
	if id.UID, err = c.clusterUID(ctx); err != nil {
		return id, nil, fmt.Errorf("read the uid of namespace kube-system: %w", c.explain(err))
	}
	namespaces, err := c.namespaces(ctx)
	if err != nil {
		return id, nil, fmt.Errorf("list namespaces: %w", c.explain(causeOf(ctx, err)))
	}
	return id, namespaces, nil
}

func (c *Cluster) serverVersion(ctx context.Context) (vedette.Cluster, error) {
	id := vedette.Cluster{Host: c.Host()}
	resp, err := c.get(ctx, c.timeouts(), getRequest{path: "/version", accept: acceptJSON})
	if err != nil {
		return id, err
	}
	defer resp.Body.Close()
	var v struct{ GitVersion string }
	if err := decodeDocument(resp.Body, &v); err != nil {
		return id, err
	}
	id.Version, id.Fingerprint = truncate(v.GitVersion, maxNameLength), fingerprint(resp.TLS)
	return id, nil
}

// fingerprint returns the SHA-256 of the certificate that was shown.
func fingerprint(state *tls.ConnectionState) string {
	if state == nil || len(state.PeerCertificates) == 0 {
		return ""
	}
	sum := sha256.Sum256(state.PeerCertificates[0].Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}

func (c *Cluster) clusterUID(ctx context.Context) (string, error) {
	resp, err := c.get(ctx, c.timeouts(), getRequest{path: "/api/v1/namespaces/kube-system", accept: acceptMetadata})
	if isHidden(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var ns struct{ Metadata struct{ UID string } }
	err = decodeDocument(resp.Body, &ns)
	return truncate(ns.Metadata.UID, maxNameLength), err
}

// isHidden reports whether an error says that we may not look, or that there is
// no such thing (API servers without namespaces, as virtual ones can be).
func isHidden(err error) bool {
	code := statusCodeOf(err)
	return code == http.StatusForbidden || code == http.StatusNotFound
}

// namespaces returns the names of all namespaces, nil where they are hidden.
func (c *Cluster) namespaces(ctx context.Context) ([]string, error) {
	names := []string{}
	query := url.Values{"limit": {strconv.Itoa(defaultPageSize)}}
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
			return nil, errSamePage
		}
		query.Set("continue", page.Continue)
	}
	return nil, errTooManyNamespaces
}

// maxNamespaces bounds those of a cluster, which travel in one message. Kubernetes
// is tested with 10,000.
const maxNamespaces = 20_000

var errTooManyNamespaces = fmt.Errorf("%w: more than %d namespaces", jsonstream.ErrMalformed, maxNamespaces)

// maxNamespacePageBytes bounds a page of them, of which only one is kept at a time: each
// may have annotations of 256 KiB.
const maxNamespacePageBytes = defaultPageSize * 300 << 10

// maxNameLength is how long a name may be in Kubernetes.
const maxNameLength = 253

// errSamePage says that a list leads from a page to itself.
var errSamePage = fmt.Errorf("%w: a list whose next page is the page itself", jsonstream.ErrMalformed)

func (c *Cluster) namespacePage(ctx context.Context, query url.Values, names *[]string) (jsonstream.ListMeta, error) {
	resp, err := c.get(ctx, c.timeouts(), getRequest{path: "/api/v1/namespaces", query: query, accept: acceptMetadataList + "," + acceptJSON})
	if err != nil {
		return jsonstream.ListMeta{}, err
	}
	defer resp.Body.Close()
	s := jsonstream.NewSplitter(limitReader(resp.Body, maxNamespacePageBytes), new(jsonstream.BufferPool), jsonstream.Options{})
	defer s.Close()
	return s.List(nil, func(raw []byte) error {
		m, err := jsonstream.ReadMeta(raw)
		if len(m.Name) > maxNameLength { // though labels have 63
			return fmt.Errorf("%w: a namespace whose name is %d bytes long", jsonstream.ErrMalformed, len(m.Name))
		}
		if *names = append(*names, m.Name); len(*names) > maxNamespaces {
			return errTooManyNamespaces
		}
		return err
	})
}
