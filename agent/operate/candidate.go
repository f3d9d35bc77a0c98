package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/redact"
)

// candidate is one object of a series.
type candidate struct {
	name        string
	created     string         // RFC 3339, which sorts as time does
	number      int            // -1 for none
	deleting    bool           // it is being deleted
	lastApplied sensitiveBytes // what kubectl wrote of its manifest; nil for nothing
	digest      sensitiveBytes // the digest that we wrote of it; nil for none
}

// wipeCandidates clears what may be a Secret's data.
func wipeCandidates(candidates []candidate) {
	for _, x := range candidates {
		clear(x.lastApplied)
		clear(x.digest)
	}
}

// sensitiveBytes is text that may be a Secret's data. It is decoded into memory that can
// be cleared, as that of a string can't.
type sensitiveBytes []byte

// UnmarshalText takes the text over and clears what it was decoded into.
func (h *sensitiveBytes) UnmarshalText(text []byte) error {
	*h = slices.Clone(text)
	clear(text)
	return nil
}

// sensitiveMeta is the part of an object's metadata that versions are read from.
type sensitiveMeta struct {
	Metadata struct {
		Name, CreationTimestamp, DeletionTimestamp string
		Annotations                                map[string]sensitiveBytes
	}
}

// takeAnnotation returns an annotation's text, which the caller clears, and leaves none.
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

// listCandidates returns the objects of a series by age, those of one second by version.
// Only metadata is asked for, of whatever kind: it is all that is needed of most
// objects, and a list of ConfigMaps may be large.
func (r *run) listCandidates(ctx context.Context, p resourcePath, s series) ([]candidate, error) {
	var candidates []candidate
	req := request{query: url.Values{"limit": {strconv.Itoa(pageLimit)}}, accept: withFullObjectFallback(p, acceptMetadataList), sensitive: p.isSecret()}
	err := r.forEachPage(ctx, p.collection(), req, func(page []json.RawMessage, first bool) error {
		if first {
			wipeCandidates(candidates)
			candidates = nil
		}
		for _, raw := range page {
			x, ok, err := s.parseCandidate(raw)
			if err != nil {
				return err
			}
			if ok {
				candidates = append(candidates, x)
			}
		}
		return nil
	})
	if err != nil {
		wipeCandidates(candidates)
		return nil, err
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.number, b.number), cmp.Compare(a.name, b.name))
	})
	return candidates, nil
}

// withFullObjectFallback accepts whole objects too, from API servers that know no metadata
// alone, but for Secrets.
func withFullObjectFallback(p resourcePath, accept string) string {
	if p.isSecret() {
		return accept
	}
	return accept + "," + contentTypeJSON
}

// parseCandidate reads an object and clears what it was read from. It reports false
// for one that is not of the series.
func (s series) parseCandidate(raw []byte) (candidate, bool, error) {
	var d sensitiveMeta
	defer clear(raw)
	defer func() { d.wipe() }()
	if err := json.Unmarshal(raw, &d); err != nil {
		return candidate{}, false, vedette.Errorf(vedette.Unavailable, "the metadata of a %s that the cluster sent makes no sense%s", s.kind, manifest.SyntaxErrorOffset(err))
	}
	annotation := func(name string) string { return string(d.Metadata.Annotations[name]) }
	if !s.includes(annotation) {
		return candidate{}, false, nil
	}
	return candidate{
		name: d.Metadata.Name, created: d.Metadata.CreationTimestamp, number: s.versionNumber(d.Metadata.Name, annotation(artifactVersion)),
		deleting: d.Metadata.DeletionTimestamp != "", lastApplied: d.takeAnnotation(apply.LastApplied), digest: d.takeAnnotation(redact.ContentAnnotation),
	}, true, nil
}
