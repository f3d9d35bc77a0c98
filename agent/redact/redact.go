// Package redact removes from a Kubernetes object what must not leave the cluster: bytes in,
// bytes out, in one pass and without a tree of Go values. While it copies, it cuts
// managedFields and everything secret, and extracts the header by which the server filters
// and lists objects.
//
// Whatever the configuration, it removes:
//
//   - metadata.managedFields;
//   - from a Secret, everything but apiVersion, kind, metadata, type and immutable, and from
//     its metadata all unknown members, all annotations whose key is not known to hold names
//     (see allowsSecretAnnotation), and all that could hold a manifest (see safeAnnotation);
//   - data and stringData of Secrets inside other objects, as operators embed them in custom
//     resources;
//   - annotations that hold the manifest of a Secret as text, or that are compressed;
//   - the annotation with a digest of the manifest from which an object was made.
//
// Less formally: names are compared after their escapes are resolved, every duplicate of a
// member is treated like the first one, and errors contain positions but never content.
package redact

import (
	"errors"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// Config lists what to redact in addition to Secrets. Entries are patterns of names. They
// ignore case; * matches any sequence of characters and ? one. The zero value redacts only
// Secrets.
//
// Every object to which a rule could apply loses its
// kubectl.kubernetes.io/last-applied-configuration annotation (and those of other tools),
// because that annotation holds the same values as text.
type Config struct {
	// Annotations are the keys of annotations whose values are replaced, in objects and in
	// the templates inside them.
	Annotations []string
	// ConfigMapKeys are the keys of a ConfigMap's data and binaryData whose
	// values are replaced.
	ConfigMapKeys []string
	// Environment are the names of environment variables whose literal values are replaced,
	// for example "*PASSWORD*", in every array with the name "env". References (valueFrom)
	// are kept. This takes a quarter more time per object.
	Environment []string
	// SecretAnnotations are keys of annotations that Secrets keep, in addition to those that
	// are known to hold names. Values that are longer than 256 bytes or could hold a manifest
	// are removed anyway. This is not a rule in the sense above.
	SecretAnnotations []string
}

// Validate returns an error of kind Invalid for each invalid pattern.
func (c Config) Validate() error {
	return errors.Join(
		validateGlobs("redact.annotations", c.Annotations),
		validateGlobs("redact.configMapKeys", c.ConfigMapKeys),
		validateGlobs("redact.environment", c.Environment),
		validateGlobs("redact.secretAnnotations", c.SecretAnnotations),
	)
}

// Redactor redacts objects. It is immutable and safe for concurrent use.
type Redactor struct {
	rules              rules
	annotationPrefixes []string // prefixes of the annotations in the header
	projections        map[vedette.Kind]*projection
	passes             sync.Pool // of *pass
}

// New returns a Redactor that extracts the given projections and the annotations with the
// given prefixes. It returns an error of kind Invalid for invalid patterns and paths.
func New(c Config, projections []vedette.Projection, annotationPrefixes []string) (*Redactor, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	compiled, err := compileProjections(projections)
	if err != nil {
		return nil, err
	}
	r := &Redactor{rules: compileRules(c), annotationPrefixes: slices.Clone(annotationPrefixes), projections: compiled}
	r.passes.New = func() any { return new(pass) }
	return r, nil
}

// projectionFor returns the projection of a kind, or else the one for all other kinds, or nil.
func (r *Redactor) projectionFor(k vedette.Kind) *projection {
	if p, ok := r.projections[k]; ok {
		return p
	}
	return r.projections[vedette.Kind{}]
}

// Object redacts the object in raw and appends the result to dst, followed by the summary if
// there is one. It returns the header, whose Body and Summary are slices of the returned
// buffer, and the buffer. It keeps neither raw nor dst.
//
// The object is a Secret if the requested resource is one, or if the object says so itself.
// The kind and apiVersion of the resource are written into a body that lacks them (as items
// of lists do) or is a PartialObjectMetadata. If the resource is zero, the object must have
// both.
//
// If there is an error, the returned buffer has the content of dst, and the memory behind it
// is zeroed.
func (r *Redactor) Object(dst []byte, resource vedette.Resource, raw []byte) (o vedette.Object, out []byte, err error) {
	out, err = r.ObjectInto(&o, dst, resource, raw)
	return o, out, err
}

// ObjectInto is Object for a header that the caller has room for. It does not change the header if
// there is an error.
func (r *Redactor) ObjectInto(o *vedette.Object, dst []byte, resource vedette.Resource, raw []byte) ([]byte, error) {
	p := r.passes.Get().(*pass)
	defer r.passes.Put(p)
	defer p.release()
	p.begin(r, resource, dst, raw)
	if err := p.run(); err != nil {
		Wipe(p.dst[p.base:])
		return dst, err
	}
	p.buildObject(o)
	return p.dst, nil
}

// Wipe zeroes a buffer that may have held secret data.
func Wipe(b []byte) { clear(b) }
