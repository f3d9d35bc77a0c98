package redact

import (
	"time"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

// header gathers the texts of an object's header in one buffer, so that they
// cost one allocation in the end.
type header struct {
	bytes       []byte
	text        [texts]span
	labels      []pair
	annotations []pair
	owner       ownerSpans // the one that is being read
	chosen      ownerSpans
}

// The texts of a header.
const (
	textKind = iota
	textAPIVersion
	textName
	textNamespace
	textUID
	textResourceVersion
	textCreated
	texts
)

type span struct{ from, to int }

func (s span) empty() bool { return s.from == s.to }

type pair struct{ key, value span }

type ownerSpans struct {
	apiVersion, kind, name, uid span
	found, controller           bool
}

func (h *header) reset() {
	clear(h.text[textName:])
	h.labels, h.annotations, h.chosen = h.labels[:0], h.annotations[:0], ownerSpans{}
}

// keep takes a text over, with U+FFFD for what is not UTF-8: the API server
// sends none such, and a header that held it could not be sent on.
func (h *header) keep(text []byte) span {
	from := len(h.bytes)
	if utf8.Valid(text) {
		h.bytes = append(h.bytes, text...)
	} else {
		for _, r := range string(text) {
			h.bytes = utf8.AppendRune(h.bytes, r)
		}
	}
	return span{from, len(h.bytes)}
}

func (h *header) openOwner() { h.owner = ownerSpans{found: true} }

// closeOwner chooses the controller, or else the first.
func (h *header) closeOwner() {
	if !h.chosen.found || h.owner.controller && !h.chosen.controller {
		h.chosen = h.owner
	}
}

// note takes what belongs into the header from a member, before its value is
// walked, and settles the roles that hang on the value.
func (p *pass) note(as role, name []byte, i int) role {
	h := &p.header
	switch as {
	case rootKind, rootVersion:
		return p.identity(as, i)
	case rootItems:
		p.said.items = p.said.items || p.at(i) == '['
		return plain
	case metadata:
		h.reset()
	case headerText:
		h.text[textOf(name)] = p.keepString(i)
		return plain
	case labels:
		h.labels = h.labels[:0]
	case label:
		h.labels = append(h.labels, pair{h.keep(name), p.keepString(i)})
		return plain
	case annotations:
		h.annotations = h.annotations[:0]
	case annotation:
		return p.noteAnnotation(name, i)
	case innerAnnotation:
		return p.annotationRole(name, i)
	case owners:
		h.chosen = ownerSpans{}
	case ownerText:
		p.noteOwner(name, i)
		return plain
	}
	return as
}

func textOf(name []byte) int {
	switch string(name) {
	case "name":
		return textName
	case "namespace":
		return textNamespace
	case "uid":
		return textUID
	case "resourceVersion":
		return textResourceVersion
	}
	return textCreated
}

// keepString takes the string at i over; it is empty where there is none.
func (p *pass) keepString(i int) span {
	text, _ := p.stringAt(i)
	return p.header.keep(text)
}

// noteAnnotation keeps the name first, since it may stand where annotationRole
// resolves escapes.
func (p *pass) noteAnnotation(name []byte, i int) role {
	if !p.lifted(name) {
		return p.annotationRole(name, i)
	}
	h := &p.header
	key := h.keep(name)
	as := p.annotationRole(name, i)
	switch {
	case as == replaced:
		h.annotations = append(h.annotations, pair{key, h.keep([]byte(Redacted))})
	case as == plain && p.at(i) == '"':
		h.annotations = append(h.annotations, pair{key, p.keepString(i)})
	}
	return as
}

func (p *pass) lifted(name []byte) bool {
	for _, prefix := range p.redactor.prefixes {
		if len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

func (p *pass) noteOwner(name []byte, i int) {
	o := &p.header.owner
	switch string(name) {
	case "apiVersion":
		o.apiVersion = p.keepString(i)
	case "kind":
		o.kind = p.keepString(i)
	case "name":
		o.name = p.keepString(i)
	case "uid":
		o.uid = p.keepString(i)
	case "controller":
		o.controller = p.at(i) == 't'
	}
}

// finish makes the header of what was gathered.
func (p *pass) finish() vedette.Object {
	h := &p.header
	apiVersion := h.text[textAPIVersion]
	if !p.said.version {
		apiVersion = h.keep(p.appendAPIVersion(p.scratch[:0]))
	}
	all := string(h.bytes)
	get := func(s span) string { return all[s.from:s.to] }
	summary := p.appendSummary()
	p.complete()
	o := vedette.Object{
		Key:             vedette.Key{Kind: p.resource.Kind, Namespace: get(h.text[textNamespace]), Name: get(h.text[textName])},
		UID:             get(h.text[textUID]),
		ResourceVersion: get(h.text[textResourceVersion]),
		APIVersion:      get(apiVersion),
		Created:         seconds(get(h.text[textCreated])),
		Labels:          toMap(h.labels, all),
		Annotations:     toMap(h.annotations, all),
	}
	if o.Kind.Name == "" {
		o.Kind = kindOf(o.APIVersion, get(h.text[textKind]))
	}
	if c := h.chosen; c.found {
		o.Owner = vedette.Owner{Kind: kindOf(get(c.apiVersion), get(c.kind)), Name: get(c.name), UID: get(c.uid)}
	}
	end := len(p.dst) - summary
	o.Body = p.dst[p.base:end:end]
	if summary > 0 {
		o.Summary = p.dst[end:len(p.dst):len(p.dst)]
	}
	return o
}

// toMap returns nil for no pairs.
func toMap(pairs []pair, all string) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	m := make(map[string]string, len(pairs))
	for _, p := range pairs {
		m[all[p.key.from:p.key.to]] = all[p.value.from:p.value.to]
	}
	return m
}

// seconds reads a creationTimestamp; what is none counts as unknown, since an
// object without an age is better than none.
func seconds(created string) int64 {
	t, err := time.Parse(time.RFC3339, created)
	if err != nil {
		return 0
	}
	return t.Unix()
}
