// Package redact turns one Kubernetes object, as the API server sent it, into
// what may leave the cluster: bytes in, bytes out, in one pass and without a
// tree of Go values. While it copies it cuts managedFields and whatever is
// secret, and lifts out the header that the server filters and lists by.
//
// What never passes, whatever the configuration:
//
//   - metadata.managedFields;
//   - of a Secret all but apiVersion, kind, metadata, type and immutable, and of
//     its metadata all that is not known there, with every annotation whose key is
//     not known to hold names (kept says which) or that could hold a manifest
//     (harmless says which);
//   - data and stringData below any object within another one that says it is a
//     Secret, as operators embed them in custom resources;
//   - annotations that hold a Secret's manifest as text, or that are compressed;
//   - the annotation with a digest of what an object was made from.
//
// Less formally: names are compared after their escapes are resolved, every
// duplicate of a member is treated like the first, and an error says where it
// stands and never what stands there.
package redact

import (
	"errors"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
)

// Config says what to redact beyond Secrets. Entries are patterns of names, in
// any case, with * for any run of characters and ? for one. The zero value
// redacts Secrets only.
//
// Any rule costs every object to which it could apply its
// kubectl.kubernetes.io/last-applied-configuration annotation (and its
// equivalents of other tools), because that holds the same values once more as
// text.
type Config struct {
	// Annotations are the keys whose values are replaced, in every member called
	// "annotations": of objects, and of the templates within them.
	Annotations []string
	// ConfigMapKeys are the keys of a ConfigMap's data and binaryData whose
	// values are replaced.
	ConfigMapKeys []string
	// Environment are the names of environment variables whose literal values are
	// replaced, for example "*PASSWORD*": in every array called "env", wherever it
	// stands. Values that come from elsewhere (valueFrom) are no literals. Costs a
	// quarter more time per object.
	Environment []string
	// SecretAnnotations are the keys of annotations that Secrets keep, beside those
	// that are known to hold names: no annotation with any other key leaves. Values
	// that are longer than 256 bytes, or could hold a manifest, do not leave either.
	// Costs nothing, and is no rule in the sense above.
	SecretAnnotations []string
}

// Validate reports every pattern that could not mean what it says, as Invalid.
func (c Config) Validate() error {
	return errors.Join(
		validateGlobs("redact.annotations", c.Annotations),
		validateGlobs("redact.configMapKeys", c.ConfigMapKeys),
		validateGlobs("redact.environment", c.Environment),
		validateGlobs("redact.secretAnnotations", c.SecretAnnotations),
	)
}

// Redactor redacts objects. It does not change once made, and is safe for
// concurrent use.
type Redactor struct {
	rules              rules
	annotationPrefixes []string // of the annotations that travel in the header
	projections        map[vedette.Kind]*projection
	passes             sync.Pool // of *pass
}

// New makes a Redactor that lifts what lifts say and the annotations with the
// given prefixes. It fails with Invalid on patterns and paths that it does not
// understand.
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

// projectionFor returns the lift of a kind, the one for all other kinds, or nil.
func (r *Redactor) projectionFor(k vedette.Kind) *projection {
	if p, ok := r.projections[k]; ok {
		return p
	}
	return r.projections[vedette.Kind{}]
}

// Object redacts the object in raw and appends what is left to dst, followed
// by the object's summary where it has one. It returns the header, whose Body
// and Summary are parts of the returned buffer, and the buffer. It keeps
// neither raw nor dst.
//
// The resource is the one that was asked for: it decides whether the object is
// a Secret (which it is too where it says so itself), and what kind and
// apiVersion are written into a body that lacks them, as items of lists do, or
// that calls itself PartialObjectMetadata. With the zero Resource the object
// must tell its kind.
//
// On an error the buffer comes back as it was, and wiped behind its end.
func (r *Redactor) Object(dst []byte, resource vedette.Resource, raw []byte) (vedette.Object, []byte, error) {
	p := r.passes.Get().(*pass)
	defer r.passes.Put(p)
	defer p.release()
	p.begin(r, resource, dst, raw)
	if err := p.run(); err != nil {
		Wipe(p.dst[p.base:])
		return vedette.Object{}, dst, err
	}
	o := p.buildObject()
	return o, p.dst, nil
}

// Wipe zeroes a buffer that may have held a secret.
func Wipe(b []byte) { clear(b) }
