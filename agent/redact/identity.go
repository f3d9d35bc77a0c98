package redact

import (
	"bytes"
	"slices"
)

// identity reads the kind or apiVersion at the object's root. It keeps the role
// where the value is to be replaced by the resource's.
func (p *pass) identity(as role, i int) role {
	text, ok := p.stringAt(i)
	if as == rootKind {
		p.said.note(text, p.resource.Kind.Name)
		if p.resource.Kind.Name != "" && (!ok || len(text) == 0 || string(text) == "PartialObjectMetadata") {
			p.said.kind = true
			return rootKind
		}
		p.said.kind = ok && len(text) > 0
		p.header.text[textKind] = p.header.keep(text)
		return plain
	}
	if p.resource.Version != "" && (!ok || len(text) == 0 || bytes.HasPrefix(text, []byte("meta.k8s.io/"))) {
		p.said.version = true
		p.header.text[textAPIVersion] = p.header.keep(p.appendAPIVersion(nil))
		return rootVersion
	}
	p.said.version = ok && len(text) > 0
	p.header.text[textAPIVersion] = p.header.keep(text)
	return plain
}

// note looks whether a kind is that of a list. A custom resource's kind may end
// like one, so others than the well-known ones count only where they also have
// items and are not what was asked for.
func (s *saying) note(kind []byte, asked string) {
	switch {
	case string(kind) == asked:
	case string(kind) == "List" || string(kind) == "SecretList":
		s.list = true
	case bytes.HasSuffix(kind, []byte("List")):
		s.listLike = true
	}
}

// replaceIdentity writes the resource's kind or apiVersion in place of the
// value at i.
func (p *pass) replaceIdentity(i int, as role) (int, error) {
	text := appendQuoted(nil, p.resource.Kind.Name)
	if as == rootVersion {
		text = appendQuoted(nil, p.resource.APIVersion())
	}
	return p.replaceValue(i, string(text))
}

func (p *pass) appendAPIVersion(dst []byte) []byte {
	if g := p.resource.Kind.Group; g != "" {
		dst = append(append(dst, g...), '/')
	}
	return append(dst, p.resource.Version...)
}

// complete writes kind and apiVersion into a body that has none, before all
// else as Kubernetes does.
func (p *pass) complete() {
	if p.said.kind && p.said.version {
		return
	}
	head := p.scratch[:0]
	if !p.said.kind {
		head = append(appendQuoted(append(head, `"kind":`...), p.resource.Kind.Name), ',')
	}
	if !p.said.version {
		head = append(appendQuoted(append(head, `"apiVersion":`...), string(p.appendAPIVersion(nil))), ',')
	}
	p.scratch = head
	p.grow(len(head))
	p.dst = slices.Insert(p.dst, p.base+1, head...)
}
