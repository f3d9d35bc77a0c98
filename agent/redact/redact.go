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
	// A set of rules: strict sends only what Spinnaker's views need, with no environment values, data of ConfigMaps, command lines,
	// specs of custom resources, and no annotations but known ones; pods' logs are refused, and so are manifests that were read through
	// it (docs/data-that-leaves.md). Empty for none.
	Preset string `config:"preset"`
	// Annotations whose values are removed.
	Annotations []string `config:"annotations"`
	// Keys of ConfigMaps whose values are removed.
	ConfigMapKeys []string `config:"configMapKeys"`
	// Names of environment variables whose values are removed from containers.
	Environment []string `config:"environment"`
	// Annotations that Secrets keep, in addition to a built-in list (Spinnaker, Helm and others, whose values
	// are names). All other annotations of Secrets are removed, and so is each value that is longer than 256 bytes or could be a manifest.
	SecretAnnotations []string `config:"secretAnnotations"`
}

// Validate returns an error of kind Invalid for each invalid pattern.
func (c Config) Validate() error {
	return errors.Join(
		validatePreset(c.Preset),
		validateGlobs("redact.annotations", c.Annotations),
		validateGlobs("redact.configMapKeys", c.ConfigMapKeys),
		validateGlobs("redact.environment", c.Environment),
		validateGlobs("redact.secretAnnotations", c.SecretAnnotations),
	)
}

func validatePreset(preset string) error {
	if preset == "" || preset == PresetStrict {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "redact.preset is %q: write strict, or leave it out", preset)
}

// Redactor redacts objects. It is immutable and safe for concurrent use.
type Redactor struct {
	rules              rules
	annotationPrefixes []string // prefixes of the annotations in the header
	projections        map[vedette.Kind]*projection
	strict             map[vedette.Kind]*allowed // nil without the preset
	redactions         sync.Pool                 // of *redaction
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
	if c.Preset == PresetStrict {
		r.strict = strictRules()
	}
	r.redactions.New = func() any { return new(redaction) }
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

// ReadObject is Object for an answer to a reader. The object may lack a resourceVersion, which some kinds that cannot be watched
// do not have: ComponentStatus, and those of metrics.k8s.io.
func (r *Redactor) ReadObject(dst []byte, resource vedette.Resource, raw []byte) (o vedette.Object, out []byte, err error) {
	out, err = r.object(&o, dst, resource, raw, true)
	return o, out, err
}

// ObjectInto is Object for a header that the caller has room for. It does not change the header if
// there is an error.
func (r *Redactor) ObjectInto(o *vedette.Object, dst []byte, resource vedette.Resource, raw []byte) ([]byte, error) {
	return r.object(o, dst, resource, raw, false)
}

func (r *Redactor) object(o *vedette.Object, dst []byte, resource vedette.Resource, raw []byte, noVersion bool) ([]byte, error) {
	p := r.redactions.Get().(*redaction)
	defer r.redactions.Put(p)
	defer p.release()
	p.begin(r, resource, dst, raw)
	p.noVersion = noVersion
	if err := p.run(); err != nil {
		Wipe(p.dst[p.base:])
		return dst, err
	}
	p.buildObject(o)
	return p.dst, nil
}

// Wipe zeroes a buffer that may have held secret data.
func Wipe(b []byte) { clear(b) }
