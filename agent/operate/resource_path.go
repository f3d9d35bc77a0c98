package operate

import (
	"context"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// secretKind is read as metadata only, by all verbs.
var secretKind = vedette.Kind{Name: "Secret"}

// resourcePath is the path of an object, or of a collection, in the API.
type resourcePath struct {
	vedette.Resource
	namespace string // empty for cluster-scoped kinds, and for all namespaces
	name      string // empty for a collection
}

// resolveObject returns the path of the one object that a target names.
func (r *run) resolveObject(ctx context.Context, t vedette.Target) (resourcePath, error) {
	if err := manifest.CheckName(t.Name); err != nil {
		return resourcePath{}, err
	}
	p, err := r.resolveTarget(ctx, t)
	if p.Namespaced && p.namespace == "" {
		p.namespace = r.defaultNamespace()
	}
	return p, err
}

// defaultNamespace returns the namespace of objects without one.
func (r *run) defaultNamespace() string { return r.operator.cluster.Namespace() }

// resolveTarget returns the path of a target whose name may be empty.
func (r *run) resolveTarget(ctx context.Context, t vedette.Target) (resourcePath, error) {
	if t.Namespace != "" && !manifest.IsPathSegment(t.Namespace) {
		return resourcePath{}, vedette.Errorf(vedette.Invalid, "%q is not a valid name of a namespace", t.Namespace)
	}
	resource, err := r.resolveResource(ctx, t)
	if err != nil {
		return resourcePath{}, err
	}
	p := resourcePath{Resource: resource, name: t.Name}
	if resource.Namespaced {
		p.namespace = t.Namespace
	}
	return p, nil
}

// urlPath returns the URL path of the object, or of the collection if there is no name.
func (p resourcePath) urlPath() string {
	path := groupVersionPath(p.APIVersion())
	if p.namespace != "" {
		path += "/namespaces/" + p.namespace
	}
	path += "/" + p.Plural
	if p.name != "" {
		path += "/" + p.name
	}
	return path
}

func (p resourcePath) collection() resourcePath { p.name = ""; return p }

func (p resourcePath) isSecret() bool { return p.Kind == secretKind }

// acceptHeader returns the media type in which the object is requested.
func (p resourcePath) acceptHeader() string {
	if p.isSecret() {
		return acceptMetadata
	}
	return contentTypeJSON
}

// withFullObjectFallback accepts whole objects too, from API servers that cannot send metadata
// alone, but not of Secrets.
func withFullObjectFallback(p resourcePath, accept string) string {
	if p.isSecret() {
		return accept
	}
	return accept + "," + contentTypeJSON
}

func (p resourcePath) key() vedette.Key {
	return vedette.Key{Kind: p.Kind, Namespace: p.namespace, Name: p.name}
}

// do sends a request for an object or a collection. The path of req is that of a subresource. Errors
// and warnings about Secrets do not quote their data.
func (r *run) do(ctx context.Context, p resourcePath, req request) ([]byte, int, error) {
	target := p
	if req.toCollection {
		target = p.collection()
	}
	req.path = target.urlPath() + req.path
	if req.accept == "" {
		req.accept = p.acceptHeader()
	}
	body, status, err := r.send(ctx, req)
	if statusErr := asStatusError(err); statusErr != nil {
		hasPatchCause := statusErr.hasPatchCause()
		statusErr.maskQuotedValues(p)
		if hasPatchCause && !p.isSecret() {
			statusErr.Message += r.describeWrongField(ctx, req, statusErr.Message)
		}
	}
	if p.isSecret() && !r.warnings.isEmpty() {
		r.warnings.suppressSecrets()
	}
	if status == http.StatusNotFound && isKindNotFound(err) {
		r.operator.kinds.invalidate()
	}
	return body, status, err
}

// isKindNotFound reports whether an error is the 404 of an unknown path: then the kind is gone, and
// not the object.
func isKindNotFound(err error) bool {
	return strings.HasPrefix(err.Error(), "the server could not find the requested resource") ||
		strings.HasPrefix(err.Error(), "404 page not found")
}
