package operate

import (
	"context"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// secretKind is asked for as metadata only, whatever is done to it.
var secretKind = vedette.Kind{Name: "Secret"}

// resourcePath is where an object, or a list of them, is found.
type resourcePath struct {
	vedette.Resource
	namespace string // empty for cluster-scoped kinds, and for all namespaces
	name      string // empty for a list
}

// resolveObject resolves a target to the place of one object.
func (r *run) resolveObject(ctx context.Context, t vedette.Target) (resourcePath, error) {
	if err := manifest.CheckName(t.Name); err != nil {
		return resourcePath{}, err
	}
	p, err := r.resolveTarget(ctx, t)
	if p.Namespaced && p.namespace == "" {
		p.namespace = "default"
	}
	return p, err
}

// resolveTarget resolves a target to a place, whose name may be empty.
func (r *run) resolveTarget(ctx context.Context, t vedette.Target) (resourcePath, error) {
	if t.Namespace != "" && !manifest.IsPathSegment(t.Namespace) {
		return resourcePath{}, vedette.Errorf(vedette.Invalid, "%q is no name of a namespace", t.Namespace)
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

// urlPath is the path of the object, or of the list where there is no name.
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

// acceptHeader is the form in which an object of the place is asked for.
func (p resourcePath) acceptHeader() string {
	if p.isSecret() {
		return acceptMetadata
	}
	return contentTypeJSON
}

func (p resourcePath) key() vedette.Key {
	return vedette.Key{Kind: p.Kind, Namespace: p.namespace, Name: p.name}
}

// do makes a request for one object of the place, or for its list.
func (r *run) do(ctx context.Context, p resourcePath, req request) ([]byte, int, error) {
	req.path = p.urlPath() + req.path
	if req.accept == "" {
		req.accept = p.acceptHeader()
	}
	body, status, err := r.send(ctx, req)
	if statusErr := asStatusError(err); statusErr != nil {
		statusErr.maskQuotedValues(p)
	}
	if p.isSecret() && !r.warnings.isEmpty() {
		r.warnings.suppressSecrets()
	}
	if status == http.StatusNotFound && isKindNotFound(err) {
		r.operator.kinds.invalidate()
	}
	return body, status, err
}

// isKindNotFound reports whether a 404 names no object: then the kind itself is gone.
func isKindNotFound(err error) bool {
	return strings.HasPrefix(err.Error(), "the server could not find the requested resource") || strings.HasPrefix(err.Error(), "404 page not found")
}
