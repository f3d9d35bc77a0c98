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
	if in == owner {
		p.header.openOwner()
	}
	at, more, err := p.open(i, '}')
	p.depth++
	kept, cut, last := 0, 0, at
	for more && err == nil {
		if cut > 0 && kept == 0 {
			p.copied, last = at, at
		}
		name, escaped, value, bad := p.name(at)
		if bad != nil {
			return 0, bad
		}
		if escaped {
			name = p.plainText(name)
		}
		child := n.child(name)
		as := p.roleOf(in, name, value)
		if in == plain || in == root || in == envSecret {
			signs.read(p, name, value)
		}
		if as = p.note(as, name, value); as == dropped {
			if at, err = p.skip(value); err == nil {
				p.cut(last, at)
				cut++
			}
		} else if at, err = p.value(value, child, as); err == nil {
			last = at
			kept++
		}
		if err == nil {
			at, more, err = p.next(at, '}')
		}
	}
	p.depth--
	p.members = kept
	if err != nil {
		return 0, err
	}
	if in == owner {
		p.header.closeOwner()
	}
	if !p.secret && signs.secret() {
		return p.again(i, n, in, before)
	}
	return at, nil
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
