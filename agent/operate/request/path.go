package request

import (
	"context"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// secretKind is read as metadata only, by all verbs.
var secretKind = vedette.Kind{Name: "Secret"}

// Path is the path of an object, or of a collection, in the API.
type Path struct {
	vedette.Resource
	Namespace string // empty for cluster-scoped kinds, and for all namespaces
	Name      string // empty for a collection
}

// ResolveObject returns the path of the one object that a target names.
func (s *Sender) ResolveObject(ctx context.Context, t vedette.Target) (Path, error) {
	if err := manifest.CheckName(t.Name); err != nil {
		return Path{}, err
	}
	p, err := s.ResolveTarget(ctx, t)
	if p.Namespaced && p.Namespace == "" {
		p.Namespace = s.DefaultNamespace()
	}
	return p, err
}

// DefaultNamespace returns the namespace of objects without one (docs/decisions/0070).
func (s *Sender) DefaultNamespace() string { return s.cluster.Namespace() }

// ResolveTarget returns the path of a target whose name may be empty.
func (s *Sender) ResolveTarget(ctx context.Context, t vedette.Target) (Path, error) {
	if t.Namespace != "" && !manifest.IsPathSegment(t.Namespace) {
		return Path{}, vedette.Errorf(vedette.Invalid, "%q is not a valid name of a namespace", t.Namespace)
	}
	resource, err := s.ResolveResource(ctx, t)
	if err != nil {
		return Path{}, err
	}
	p := Path{Resource: resource, Name: t.Name}
	if resource.Namespaced {
		p.Namespace = t.Namespace
	}
	return p, nil
}

// urlPath returns the URL path of the object, or of its collection if the name is empty.
func (p Path) urlPath() string {
	path := GroupVersionPath(p.APIVersion())
	if p.Namespace != "" {
		path += "/namespaces/" + p.Namespace
	}
	path += "/" + p.Plural
	if p.Name != "" {
		path += "/" + p.Name
	}
	return path
}

// Collection returns the collection of the object.
func (p Path) Collection() Path { p.Name = ""; return p }

// IsSecret reports whether the object is a Secret, or a collection of them.
func (p Path) IsSecret() bool { return p.Kind == secretKind }

// acceptHeader returns the media type in which the object is requested.
func (p Path) acceptHeader() string {
	if p.IsSecret() {
		return AcceptMetadata
	}
	return ContentTypeJSON
}

// MetadataAcceptHeader returns the media type in which the metadata of the object is requested.
func (p Path) MetadataAcceptHeader() string { return withFullObjectFallback(p, AcceptMetadata) }

// withFullObjectFallback accepts whole objects too, from API servers that cannot send metadata
// alone, but not of Secrets.
func withFullObjectFallback(p Path, accept string) string {
	if p.IsSecret() {
		return accept
	}
	return accept + "," + ContentTypeJSON
}

// Key returns the key of the object.
func (p Path) Key() vedette.Key {
	return vedette.Key{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
}

// Do sends a request for an object or a collection. The path of req is that of a subresource. A creation is sent to the
// collection of the object. Errors and warnings about Secrets do not quote their data.
func (s *Sender) Do(ctx context.Context, p Path, req Request) ([]byte, int, error) {
	target := p
	if req.Method == http.MethodPost {
		target = p.Collection()
	}
	subresource := req.Path
	req.Path = target.urlPath() + req.Path
	if req.Accept == "" {
		req.Accept = p.acceptHeader()
	}
	s.readBefore(ctx, p, req)
	body, status, err := s.Send(ctx, req)
	s.noteResponse(ctx, p, req, subresource, body, err)
	if statusErr := AsStatusError(err); statusErr != nil {
		hasPatchCause := statusErr.hasPatchCause()
		statusErr.maskQuotedValues(p, s.Redactor().HidesValues())
		if hasPatchCause && !p.IsSecret() {
			statusErr.Message += s.describeWrongField(ctx, req, statusErr.Message)
		}
	}
	if p.IsSecret() && !s.Warnings.isEmpty() {
		s.Warnings.suppressSecrets()
	}
	if IsKindNotFound(err) {
		s.kinds.invalidate()
		err = s.confirmKindGone(ctx, p, err)
	}
	return body, status, err
}

// confirmKindGone returns a kindNotServedError if the cluster's lists of what it serves lack the kind for whose path the 404 err came,
// and err otherwise. Proxies answer as API servers do for unknown paths, so that this alone shows nothing.
func (s *Sender) confirmKindGone(ctx context.Context, p Path, err error) error {
	resources, listErr := s.fetchResources(ctx, p.APIVersion())
	if IsKindNotServed(listErr) {
		return listErr
	}
	if listErr != nil || slices.ContainsFunc(resources, func(other vedette.Resource) bool { return other.Plural == p.Plural }) {
		return err
	}
	return kindNotServedf("the cluster serves no %s in apiVersion %s any more", p.Plural, p.APIVersion())
}
