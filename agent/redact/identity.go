package redact

import (
	"bytes"
	"slices"
)

// identityRole reads the kind or apiVersion at the object's root. It returns the role
// unchanged if the value must be replaced by that of the resource.
func (p *redaction) identityRole(as role, i int) role {
	text, ok := p.stringAt(i)
	if as == roleRootKind {
		p.root.recordKind(text, p.resource.Kind.Name)
		if p.resource.Kind.Name != "" && (!ok || len(text) == 0 || string(text) == "PartialObjectMetadata") {
			p.root.kind = true
			return roleRootKind
		}
		p.root.kind = ok && len(text) > 0
		p.header.texts[textKind] = p.header.add(text)
		return rolePlain
	}
	if p.resource.Version != "" && (!ok || len(text) == 0 || bytes.HasPrefix(text, []byte("meta.k8s.io/"))) {
		p.root.version = true
		p.header.texts[textAPIVersion] = p.header.add(p.appendAPIVersion(nil))
		return roleRootAPIVersion
	}
	p.root.version = ok && len(text) > 0
	p.header.texts[textAPIVersion] = p.header.add(text)
	return rolePlain
}

// recordKind records whether a kind is that of a list. The kind of a custom resource may also
// end in "List", so unknown kinds count only if the object also has items and is not of the
// requested kind.
func (s *rootFields) recordKind(kind []byte, requested string) {
	switch {
	case string(kind) == requested:
	case string(kind) == "List" || string(kind) == "SecretList":
		s.list = true
	case bytes.HasSuffix(kind, []byte("List")):
		s.listLike = true
	}
}

// replaceIdentity replaces the value at i by the resource's kind or apiVersion.
func (p *redaction) replaceIdentity(i int, as role) (int, error) {
	text := appendQuoted(nil, p.resource.Kind.Name)
	if as == roleRootAPIVersion {
		text = appendQuoted(nil, p.resource.APIVersion())
	}
	return p.replaceValue(i, string(text))
}

func (p *redaction) appendAPIVersion(dst []byte) []byte {
	if g := p.resource.Kind.Group; g != "" {
		dst = append(append(dst, g...), '/')
	}
	return append(dst, p.resource.Version...)
}

// insertMissingIdentity writes a missing kind and apiVersion at the beginning of the body, as
// Kubernetes does.
func (p *redaction) insertMissingIdentity() {
	if p.root.kind && p.root.version {
		return
	}
	missing := p.scratch[:0]
	if !p.root.kind {
		missing = append(appendQuoted(append(missing, `"kind":`...), p.resource.Kind.Name), ',')
	}
	if !p.root.version {
		missing = append(appendQuoted(append(missing, `"apiVersion":`...), string(p.appendAPIVersion(nil))), ',')
	}
	p.scratch = missing
	p.grow(len(missing))
	p.dst = slices.Insert(p.dst, p.base+1, missing...)
}
