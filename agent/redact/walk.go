package redact

// value walks the value at i and captures what the plan wants of it: n is the
// place of the value in the plan, nil where nothing below it is wanted.
func (p *pass) value(i int, n *node, as role) (int, error) {
	if n == nil {
		return p.walk(i, nil, as)
	}
	p.gather.clear(n)
	before := p.here()
	end, err := p.walk(i, n, as)
	if err == nil && n.ends() {
		p.capture(n, i, end, before)
	}
	return end, err
}

func (p *pass) walk(i int, n *node, as role) (int, error) {
	switch as {
	case replaced:
		return p.replaceValue(i, `"`+Redacted+`"`)
	case replacedBinary:
		return p.replaceValue(i, `"`+RedactedBinary+`"`)
	case rootKind, rootVersion:
		return p.replaceIdentity(i, as)
	case plain:
		if !p.careful && !n.goesOn() {
			return p.quiet(i, n)
		}
	}
	switch p.at(i) {
	case '{':
		if as == owner {
			return p.owner(i, n)
		}
		return p.object(i, n, as)
	case '[':
		return p.array(i, n, as)
	}
	return p.scalar(i)
}

// quiet steps over a value in which nothing is to be done, and walks it after
// all where something within names a Secret.
func (p *pass) quiet(i int, n *node) (int, error) {
	p.sign = false
	end, err := p.skip(i)
	if err != nil || !p.sign || p.raw[i] == '"' {
		return end, err
	}
	p.careful = true
	end, err = p.walk(i, n, plain)
	p.careful = false
	return end, err
}

// owner walks an entry of the object's ownerReferences.
func (p *pass) owner(i int, n *node) (int, error) {
	p.header.openOwner()
	end, err := p.object(i, n, owner)
	p.header.closeOwner()
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
	before, signs := p.here(), signs{}
	if in == envEntry {
		in = p.entryRole(i)
	}
	at, more, err := p.open(i, '}')
	p.depth++
	kept, cut, last := 0, 0, at
	for more && err == nil {
		if cut > 0 && kept == 0 {
			p.copied, last = at, at
		}
		m, bad := p.member(at, n, in, &signs)
		if bad != nil {
			return 0, bad
		}
		if m.as == dropped {
			if at, err = p.skip(m.value); err != nil {
				break
			}
			p.cut(last, at)
			cut++
		} else {
			at, err = p.value(m.value, m.node, m.as)
			last = at
			kept++
		}
		if err == nil {
			at, more, err = p.next(at, '}')
		}
	}
	p.depth--
	p.members = kept
	if err == nil && !p.secret && signs.secret() {
		return p.again(i, n, in, before)
	}
	return at, err
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
func (p *pass) member(i int, n *node, in role, s *signs) (member, error) {
	name, escaped, value, err := p.name(i)
	if err != nil {
		return member{}, err
	}
	if escaped {
		name = p.plainText(name)
	}
	child, as := n.child(name), p.roleOf(in, name, value)
	if in == plain || in == root || in == envSecret {
		s.read(p, name, value)
	}
	return member{value, child, p.note(as, name, value)}, nil
}

// array walks the array at i. Nothing is ever cut from one, so that indexes
// stay what they were.
func (p *pass) array(i int, n *node, in role) (int, error) {
	element := elementRole(in)
	star := n.each()
	p.gather.open(star)
	at, more, err := p.open(i, ']')
	p.depth++
	count := 0
	for more && err == nil {
		p.gather.element(star, count == 0)
		if at, err = p.value(at, star, element); err == nil {
			p.gather.filled(star)
			count++
			at, more, err = p.next(at, ']')
		}
	}
	p.depth--
	p.members = count
	if err == nil {
		p.gather.close(star)
	}
	return at, err
}

// entryRole looks through an entry of an env array for a name to which a rule
// applies, before it is walked: its value may stand before its name.
func (p *pass) entryRole(i int) role {
	s := scanner{raw: p.raw, depth: p.depth}
	hit := false
	at, more, err := s.open(i, '}')
	for more && err == nil {
		var name []byte
		var escaped bool
		if name, escaped, at, err = s.name(at); err != nil {
			break
		}
		if escaped {
			name = p.plainText(name)
		}
		if string(name) == "name" {
			text, _ := p.stringAt(at)
			hit = hit || p.redactor.rules.environment.match(text)
		}
		if at, err = s.skip(at); err == nil {
			at, more, err = s.next(at, '}')
		}
	}
	if hit {
		return envSecret
	}
	return plain
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
