package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
)

// instance is one object of a series.
type instance struct {
	name    string
	created string // RFC 3339, which sorts as time does
	number  int    // -1 for none
	doomed  bool   // it is being deleted
	applied hidden // what kubectl wrote of its manifest; nil for nothing
	content hidden // the digest that we wrote of it; nil for none
}

// wipe clears what may be a Secret's data.
func wipe(made []instance) {
	for _, x := range made {
		clear(x.applied)
		clear(x.content)
	}
}

// hidden is text that may be a Secret's data. It is decoded into memory that can
// be cleared, as that of a string can't.
type hidden []byte

// UnmarshalText takes the text over and clears what it was decoded into.
func (h *hidden) UnmarshalText(text []byte) error {
	*h = slices.Clone(text)
	clear(text)
	return nil
}

// described is the part of an object's metadata that versions are read from.
type described struct {
	Metadata struct {
		Name, CreationTimestamp, DeletionTimestamp string
		Annotations                                map[string]hidden
	}
}

// take returns an annotation's text, which the caller clears, and leaves none.
func (d described) take(annotation string) hidden {
	text := d.Metadata.Annotations[annotation]
	delete(d.Metadata.Annotations, annotation)
	return text
}

func (d described) wipe() {
	for _, text := range d.Metadata.Annotations {
		clear(text)
	}
}

// madeIn returns the objects of a series by age, those of one second by version.
// Only metadata is asked for, of whatever kind: it is all that is needed of most
// objects, and a list of ConfigMaps may be large.
func (o *Operator) madeIn(ctx context.Context, p place, s series) ([]instance, error) {
	var made []instance
	c := call{query: url.Values{"limit": {strconv.Itoa(pageLimit)}}, accept: orWhole(p, metadataOnlyList), wiped: p.secret()}
	err := o.pages(ctx, p.list(), c, func(page []json.RawMessage, first bool) error {
		if first {
			wipe(made)
			made = nil
		}
		for _, raw := range page {
			x, is, err := s.instance(raw)
			if err != nil {
				return err
			}
			if is {
				made = append(made, x)
			}
		}
		return nil
	})
	if err != nil {
		wipe(made)
		return nil, err
	}
	slices.SortFunc(made, func(a, b instance) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.number, b.number), cmp.Compare(a.name, b.name))
	})
	return made, nil
}

// orWhole accepts whole objects too, from API servers that know no metadata
// alone, but for Secrets.
func orWhole(p place, accept string) string {
	if p.secret() {
		return accept
	}
	return accept + "," + typeJSON
}

// instance reads an object and clears what it was read from. It reports false
// for one that is not of the series.
func (s series) instance(raw []byte) (instance, bool, error) {
	var d described
	defer clear(raw)
	defer func() { d.wipe() }()
	if err := json.Unmarshal(raw, &d); err != nil {
		return instance{}, false, vedette.Errorf(vedette.Unavailable, "the metadata of a %s that the cluster sent makes no sense%s", s.kind, offset(err))
	}
	annotation := func(name string) string { return string(d.Metadata.Annotations[name]) }
	if !s.holds(annotation) {
		return instance{}, false, nil
	}
	return instance{
		name: d.Metadata.Name, created: d.Metadata.CreationTimestamp, number: s.number(d.Metadata.Name, annotation(artifactVersion)),
		doomed: d.Metadata.DeletionTimestamp != "", applied: d.take(lastApplied), content: d.take(redact.ContentAnnotation),
	}, true, nil
}
