package redact

import (
	"time"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

// header collects the texts of an object's header in one buffer, so that they cost one
// allocation.
type header struct {
	bytes       []byte
	texts       [textCount]span
	labels      []pair
	annotations []pair
	owner       ownerSpans // the owner that is being read
	chosenOwner ownerSpans
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
	textCount
)

type span struct{ from, to int }

func (s span) empty() bool { return s.from == s.to }

type pair struct{ key, value span }

type ownerSpans struct {
	apiVersion, kind, name, uid span
	found, controller           bool
}

func (h *header) reset() {
	clear(h.texts[textName:])
	h.labels = h.labels[:0]
	h.annotations = h.annotations[:0]
	h.chosenOwner = ownerSpans{}
}

// add copies a text. It replaces invalid UTF-8 by U+FFFD, because protobuf rejects strings
// that are not UTF-8.
func (h *header) add(text []byte) span {
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

func (h *header) beginOwner() { h.owner = ownerSpans{found: true} }

// endOwner keeps the owner that is the controller, or else the first one.
func (h *header) endOwner() {
	if !h.chosenOwner.found || h.owner.controller && !h.chosenOwner.controller {
		h.chosenOwner = h.owner
	}
}

// recordHeader copies a member's value into the header if it belongs there, before the value
// is walked. It returns the final role, which may depend on the value.
func (p *redaction) recordHeader(as role, name []byte, i int) role {
	h := &p.header
	switch as {
	case roleRootKind, roleRootAPIVersion:
		return p.identityRole(as, i)
	case roleRootItems:
		p.root.items = p.root.items || p.at(i) == '['
		return rolePlain
	case roleMetadata:
		h.reset()
	case roleHeaderText:
		h.texts[textIndex(name)] = p.addString(i)
		return rolePlain
	case roleLabels:
		h.labels = h.labels[:0]
	case roleLabel:
		h.labels = append(h.labels, pair{h.add(name), p.addString(i)})
		return rolePlain
	case roleAnnotations:
		h.annotations = h.annotations[:0]
	case roleAnnotation:
		return p.recordAnnotation(name, i)
	case roleNestedAnnotation:
		return p.annotationRole(name, i)
	case roleOwners:
		h.chosenOwner = ownerSpans{}
	case roleOwnerText:
		p.recordOwner(name, i)
		return rolePlain
	}
	return as
}

func textIndex(name []byte) int {
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

// addString copies the string at i. It returns an empty span if there is no string.
func (p *redaction) addString(i int) span {
	text, _ := p.stringAt(i)
	return p.header.add(text)
}

// recordAnnotation copies the name first, because annotationRole overwrites the buffer that
// may hold it.
func (p *redaction) recordAnnotation(name []byte, i int) role {
	if !p.isHeaderAnnotation(name) {
		return p.annotationRole(name, i)
	}
	h := &p.header
	key := h.add(name)
	as := p.annotationRole(name, i)
	switch {
	case as == roleReplaced:
		h.annotations = append(h.annotations, pair{key, h.add([]byte(Redacted))})
	case as == rolePlain && p.at(i) == '"':
		h.annotations = append(h.annotations, pair{key, p.addString(i)})
	}
	return as
}

func (p *redaction) isHeaderAnnotation(name []byte) bool {
	for _, prefix := range p.redactor.annotationPrefixes {
		if len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

func (p *redaction) recordOwner(name []byte, i int) {
	o := &p.header.owner
	switch string(name) {
	case "apiVersion":
		o.apiVersion = p.addString(i)
	case "kind":
		o.kind = p.addString(i)
	case "name":
		o.name = p.addString(i)
	case "uid":
		o.uid = p.addString(i)
	case "controller":
		o.controller = p.at(i) == 't'
	}
}

// buildObject sets o to the collected header.
func (p *redaction) buildObject(o *vedette.Object) {
	h := &p.header
	apiVersion := h.texts[textAPIVersion]
	if !p.root.version {
		apiVersion = h.add(p.appendAPIVersion(p.scratch[:0]))
	}
	all := string(h.bytes)
	get := func(s span) string { return all[s.from:s.to] }
	summary := p.appendSummary()
	p.insertMissingIdentity()
	*o = vedette.Object{
		Key:             vedette.Key{Kind: p.resource.Kind, Namespace: get(h.texts[textNamespace]), Name: get(h.texts[textName])},
		UID:             get(h.texts[textUID]),
		ResourceVersion: get(h.texts[textResourceVersion]),
		APIVersion:      get(apiVersion),
		Created:         unixSeconds(get(h.texts[textCreated])),
		Labels:          toMap(h.labels, all),
		Annotations:     toMap(h.annotations, all),
	}
	if o.Kind.Name == "" {
		o.Kind = kindOf(o.APIVersion, get(h.texts[textKind]))
	}
	if c := h.chosenOwner; c.found {
		o.Owner = vedette.Owner{Kind: kindOf(get(c.apiVersion), get(c.kind)), Name: get(c.name), UID: get(c.uid)}
	}
	end := len(p.dst) - summary
	o.Body = p.dst[p.base:end:end]
	if summary > 0 {
		o.Summary = p.dst[end:len(p.dst):len(p.dst)]
	}
}

// toMap returns nil if there are no pairs.
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

// unixSeconds parses a creationTimestamp. An invalid one counts as unknown, because an object
// without an age is better than no object.
func unixSeconds(created string) int64 {
	t, err := time.Parse(time.RFC3339, created)
	if err != nil {
		return 0
	}
	return t.Unix()
}
