package redact

// value walks the value at i and captures what the plan wants of it: n is the
// place of the value in the plan, nil where nothing below it is wanted.
func (p *pass) value(i int, n *node, as role) (int, error) {
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

func (p *pass) walk(i int, n *node, as role) (int, error) {
	switch as {
	case roleReplaced:
		return p.replaceValue(i, `"`+Redacted+`"`)
	case roleReplacedBinary:
		return p.replaceValue(i, `"`+RedactedBinary+`"`)
	case roleRootKind, roleRootAPIVersion:
		return p.replaceIdentity(i, as)
	case rolePlain:
		if !p.walkAll && !n.hasDescendants() {
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

// skipUnlessSecret steps over a value in which nothing is to be done, and walks it after
// all where something within names a Secret.
func (p *pass) skipUnlessSecret(i int, n *node) (int, error) {
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
func (p *pass) owner(i int, n *node) (int, error) {
	p.header.beginOwner()
	end, err := p.object(i, n, roleOwner)
	p.header.endOwner()
	return end, err
}

func (p *pass) replaceValue(i int, text string) (int, error) {
	end, err := p.skip(i)
	if err == nil {
		p.replace(i, end, text)
	}
	return end, err
}

// object walks the object at i. A first member that is cut takes the comma
// behind it along, any later one the comma before it.
func (p *pass) object(i int, n *node, in role) (int, error) {
	before, signs := p.checkpoint(), secretHints{}
	if in == roleEnvEntry {
		in = p.entryRole(i)
	}
	pos, more, err := p.open(i, '}')
	p.depth++
	keptCount, droppedCount, last := 0, 0, pos
	for more && err == nil {
		if droppedCount > 0 && keptCount == 0 {
			p.copied, last = pos, pos
		}
		m, memberErr := p.member(pos, n, in, &signs)
		if memberErr != nil {
			return 0, memberErr
		}
		if m.as == roleDropped {
			if pos, err = p.skip(m.value); err != nil {
				break
			}
			p.omit(last, pos)
			droppedCount++
		} else {
			pos, err = p.value(m.value, m.node, m.as)
			last = pos
			keptCount++
		}
		if err == nil {
			pos, more, err = p.next(pos, '}')
		}
	}
	p.depth--
	p.members = keptCount
	if err == nil && !p.inSecret && signs.isSecret() {
		return p.rewalkAsSecret(i, n, in, before)
	}
	return pos, err
}

// member is where a member's value stands, in raw and in the plan, and what is
// to be done with it.
type member struct {
	value int
	node  *node
	as    role
}

// member reads the name at i of a member of the object that is at n and in a
// role.
func (p *pass) member(i int, n *node, in role, s *secretHints) (member, error) {
	name, escaped, value, err := p.name(i)
	if err != nil {
		return member{}, err
	}
	if escaped {
		name = p.plainText(name)
	}
	child, as := n.child(name), p.roleOf(in, name, value)
	if in == rolePlain || in == roleRoot || in == roleRedactedEnvEntry {
		s.recordMember(p, name, value)
	}
	return member{value, child, p.recordHeader(as, name, value)}, nil
}

// array walks the array at i. Nothing is ever cut from one, so that indexes
// stay what they were.
func (p *pass) array(i int, n *node, in role) (int, error) {
	itemRole := elementRole(in)
	star := n.elements()
	p.extractor.beginArray(star)
	pos, more, err := p.open(i, ']')
	p.depth++
	count := 0
	for more && err == nil {
		p.extractor.beginElement(star, count == 0)
		if pos, err = p.value(pos, star, itemRole); err == nil {
			p.extractor.endElement(star)
			count++
			pos, more, err = p.next(pos, ']')
		}
	}
	p.depth--
	p.members = count
	if err == nil {
		p.extractor.endArray(star)
	}
	return pos, err
}

// entryRole looks through an entry of an env array for a name to which a rule
// applies, before it is walked: its value may stand before its name.
func (p *pass) entryRole(i int) role {
	s := scanner{raw: p.raw, depth: p.depth}
	matched := false
	pos, more, err := s.open(i, '}')
	for more && err == nil {
		var name []byte
		var escaped bool
		if name, escaped, pos, err = s.name(pos); err != nil {
			break
		}
		if escaped {
			name = p.plainText(name)
		}
		if string(name) == "name" {
			text, _ := p.stringAt(pos)
			matched = matched || p.redactor.rules.environment.match(text)
		}
		if pos, err = s.skip(pos); err == nil {
			pos, more, err = s.next(pos, '}')
		}
	}
	if matched {
		return roleRedactedEnvEntry
	}
	return rolePlain
}

// plainText resolves the escapes of text. The result is good until the next
// call.
func (p *pass) plainText(text []byte) []byte {
	p.scratch = unescape(p.scratch[:0], text)
	return p.scratch
}

// stringAt returns what the string at i means; ok is false where there is none.
// The result is good until the next call of plainText.
func (p *pass) stringAt(i int) (text []byte, ok bool) {
	if p.at(i) != '"' {
		return nil, false
	}
	end, escaped, err := p.quoted(i)
	if err != nil {
		return nil, false
	}
	if text = p.raw[i+1 : end-1]; escaped {
		text = p.plainText(text)
	}
	return text, true
}
