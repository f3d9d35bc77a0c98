package redact

// value walks the value at i and extracts fields of the projection. N is the place of the
// value in the projection, or nil if nothing below it is extracted.
func (p *redaction) value(i int, n *node, as role) (int, error) {
	if n == nil {
		return p.walk(i, nil, as)
	}
	p.extractor.clearBelow(n)
	before := p.checkpoint()
	end, err := p.walk(i, n, as)
	if err == nil && n.isTarget() {
		p.extract(n, i, end, before)
	}
	return end, err
}

func (p *redaction) walk(i int, n *node, as role) (int, error) {
	switch as {
	case roleReplaced:
		return p.replaceValue(i, `"`+Redacted+`"`)
	case roleReplacedBinary:
		return p.replaceValue(i, `"`+RedactedBinary+`"`)
	case roleRootKind, roleRootAPIVersion:
		return p.replaceIdentity(i, as)
	case rolePlain:
		if !p.walkAll && !n.hasDescendants() && (p.allow == nil || p.allow.all) {
			return p.skipUnlessSecret(i, n)
		}
	}
	switch p.at(i) {
	case '{':
		if as == roleOwner {
			return p.owner(i, n)
		}
		return p.object(i, n, as)
	case '[':
		return p.array(i, n, as)
	}
	return p.scalar(i)
}

// skipUnlessSecret skips a value that needs no changes. If the value names a Secret inside, it
// is walked after all.
func (p *redaction) skipUnlessSecret(i int, n *node) (int, error) {
	p.secretNameSeen = false
	end, err := p.skip(i)
	if err != nil || !p.secretNameSeen || p.raw[i] == '"' {
		return end, err
	}
	p.walkAll = true
	end, err = p.walk(i, n, rolePlain)
	p.walkAll = false
	return end, err
}

// owner walks an entry of the object's ownerReferences.
func (p *redaction) owner(i int, n *node) (int, error) {
	p.header.beginOwner()
	end, err := p.object(i, n, roleOwner)
	p.header.endOwner()
	return end, err
}

func (p *redaction) replaceValue(i int, text string) (int, error) {
	end, err := p.skip(i)
	if err == nil {
		p.replace(i, end, text)
	}
	return end, err
}

// object walks the object at i. If the first member is cut, the comma after it is cut too; for
// later members it is the comma before.
func (p *redaction) object(i int, n *node, in role) (int, error) {
	before, signs := p.checkpoint(), secretHints{}
	if in == roleEnvEntry {
		in = p.entryRole(i)
	}
	allow, marks := p.allow, p.marksHere(in)
	pos, more, err := p.open(i, '}')
	p.depth++
	if marks && err == nil {
		p.openAnnotations(i)
	}
	keptCount := 0
	droppedCount := 0
	last := pos
	for more && err == nil {
		if droppedCount > 0 && keptCount == 0 {
			p.copied, last = pos, pos
		}
		p.allow = allow
		m, memberErr := p.member(pos, n, in, &signs)
		if memberErr != nil {
			return 0, memberErr
		}
		if m.as == roleDropped {
			pos, err = p.skip(m.value)
			if err != nil {
				break
			}
			p.omit(last, pos)
			droppedCount++
		} else {
			if marks && keptCount == 0 {
				p.flush(pos)
				p.emit([]byte{','})
			}
			p.allow = m.allow
			pos, err = p.value(m.value, m.node, m.as)
			last = pos
			keptCount++
		}
		if err == nil {
			pos, more, err = p.next(pos, '}')
		}
	}
	p.depth--
	p.members, p.allow = keptCount, allow
	if err == nil && in == roleMetadata {
		p.closeMetadata(pos-1, keptCount)
	}
	if err == nil && !p.inSecret && signs.isSecret() {
		return p.rewalkAsSecret(i, n, in, before)
	}
	return pos, err
}

// member is the place of a member's value, in raw and in the projection, and its role.
type member struct {
	value int
	node  *node
	as    role
	allow *allowed // see pass
}

// member reads the member whose name is at i, in an object with a role at place n.
func (p *redaction) member(i int, n *node, in role, s *secretHints) (member, error) {
	name, escaped, value, err := p.name(i)
	if err != nil {
		return member{}, err
	}
	if escaped {
		name = p.plainText(name)
	}
	allow := p.allow
	if allow != nil {
		if allow = allow.member(name, p.at(value)); allow == nil {
			return member{value: value, as: roleDropped}, nil
		}
	}
	child, as := n.child(name), p.roleOf(in, name, value)
	if in == rolePlain || in == roleRoot || in == roleRedactedEnvEntry {
		s.recordMember(p, name, value)
	}
	return member{value, child, p.recordHeader(as, name, value), allow}, nil
}

// array walks the array at i. Elements are never cut, because indexes must not change.
func (p *redaction) array(i int, n *node, in role) (int, error) {
	itemRole := elementRole(in)
	star, allow := n.elements(), p.allow
	var elements *allowed
	if allow != nil {
		elements = allow.of()
	}
	p.extractor.beginArray(star)
	pos, more, err := p.open(i, ']')
	p.depth++
	count := 0
	for more && err == nil {
		p.extractor.beginElement(star, count == 0)
		pos, err = p.element(pos, star, itemRole, elements)
		if err == nil {
			p.extractor.endElement(star)
			count++
			pos, more, err = p.next(pos, ']')
		}
	}
	p.depth--
	p.members, p.allow = count, allow
	if err == nil {
		p.extractor.endArray(star)
	}
	return pos, err
}

// entryRole checks an entry of an env array for a name to which a rule applies. It does so
// before the entry is walked, because the value may come before the name.
func (p *redaction) entryRole(i int) role {
	s := scanner{raw: p.raw, depth: p.depth}
	matched := false
	pos, more, err := s.open(i, '}')
	for more && err == nil {
		var name []byte
		var escaped bool
		name, escaped, pos, err = s.name(pos)
		if err != nil {
			break
		}
		if escaped {
			name = p.plainText(name)
		}
		if string(name) == "name" {
			text, _ := p.stringAt(pos)
			matched = matched || p.redactor.rules.environment.match(text)
		}
		pos, err = s.skip(pos)
		if err == nil {
			pos, more, err = s.next(pos, '}')
		}
	}
	if matched {
		return roleRedactedEnvEntry
	}
	return rolePlain
}

// plainText returns text with resolved escapes. The result is valid until the next call.
func (p *redaction) plainText(text []byte) []byte {
	p.scratch = unescape(p.scratch[:0], text)
	return p.scratch
}

// stringAt returns the string at i with resolved escapes. Ok is false if there is no string.
// The result is valid until the next call of plainText.
func (p *redaction) stringAt(i int) (text []byte, ok bool) {
	if p.at(i) != '"' {
		return nil, false
	}
	end, escaped, err := p.quoted(i)
	if err != nil {
		return nil, false
	}
	text = p.raw[i+1 : end-1]
	if escaped {
		text = p.plainText(text)
	}
	return text, true
}
