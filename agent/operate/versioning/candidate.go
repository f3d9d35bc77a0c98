package versioning

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/redact"
)

// Candidate is one object of a series. Wipe clears it.
type Candidate struct {
	name        string
	foreign     bool           // it has the name of a version, and does not belong to the series
	created     string         // RFC 3339, whose order is that of time
	number      int            // the version; -1 for none
	deleting    bool           // it is being deleted
	lastApplied sensitiveBytes // the last-applied annotation; nil for none
	digest      sensitiveBytes // our digest of its manifest; nil for none
}

// ParseCandidate reads the metadata of an object and clears raw. It reports false if the object is
// not of the series, and does not have the name of one of its versions either.
func (s Series) ParseCandidate(raw []byte) (Candidate, bool, error) {
	var d sensitiveMeta
	defer clear(raw)
	defer func() { d.wipe() }()
	if err := json.Unmarshal(raw, &d); err != nil {
		return Candidate{}, false, vedette.Errorf(vedette.Unavailable, "the cluster's metadata of a %s is invalid%s", s.Kind,
			manifest.SyntaxErrorOffset(err))
	}
	annotation := func(name string) string { return vedette.UnquoteAnnotation(string(d.Metadata.Annotations[name])) }
	if !s.includes(annotation) {
		return Candidate{name: d.Metadata.Name, foreign: true}, s.hasVersionName(d.Metadata.Name), nil
	}
	return Candidate{
		name: d.Metadata.Name, created: d.Metadata.CreationTimestamp, number: s.versionNumber(d.Metadata.Name, annotation(versionAnnotation)),
		deleting: d.Metadata.DeletionTimestamp != "", lastApplied: d.takeAnnotation(apply.LastApplied),
		digest: d.takeAnnotation(redact.ContentAnnotation),
	}, true, nil
}

// Sort sorts candidates by age, and those of the same second by version.
func Sort(candidates []Candidate) {
	slices.SortFunc(candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.number, b.number), cmp.Compare(a.name, b.name))
	})
}

// Wipe clears what may be the data of a Secret.
func Wipe(candidates []Candidate) {
	for _, c := range candidates {
		clear(c.lastApplied)
		clear(c.digest)
	}
}

// sensitiveBytes is text that may be the data of a Secret. JSON strings are decoded into it, and
// not into a string, because it can be cleared.
type sensitiveBytes []byte

// UnmarshalText copies the text and clears the decoder's buffer.
func (b *sensitiveBytes) UnmarshalText(text []byte) error {
	*b = slices.Clone(text)
	clear(text)
	return nil
}

// sensitiveMeta is the part of an object's metadata from which versions are read.
type sensitiveMeta struct {
	Metadata struct {
		Name, CreationTimestamp, DeletionTimestamp string
		Annotations                                map[string]sensitiveBytes
	}
}

// takeAnnotation removes an annotation and returns its text, which the caller clears.
func (d sensitiveMeta) takeAnnotation(annotation string) sensitiveBytes {
	text := d.Metadata.Annotations[annotation]
	delete(d.Metadata.Annotations, annotation)
	return text
}

func (d sensitiveMeta) wipe() {
	for _, text := range d.Metadata.Annotations {
		clear(text)
	}
}
