package redact

// nest remembers for each open container whether it is an object: one bit each,
// so that skip needs no stack of its own.
type nest [maxDepth / 64]uint64

func (n *nest) set(depth int, object bool) {
	bit := uint64(1) << (depth & 63)
	if object {
		n[depth>>6] |= bit
	} else {
		n[depth>>6] &^= bit
	}
}

func (n *nest) closer(depth int) byte {
	if n[depth>>6]>>(depth&63)&1 == 1 {
		return '}'
	}
	return ']'
}

// skip steps over the value at i, whatever it is. It sets s.sign where a string
// value names a Secret, which is the one thing within an unremarkable value that
// needs a closer look.
//
// It is a loop and not a recursion because most bytes of most objects pass
// here: that is a third faster.
func (s *scanner) skip(i int) (end int, err error) {
	var open nest
	base := s.depth
	defer func() { s.depth = base }()
	for {
		more := false
		switch s.at(i) {
		case '"':
			i, err = s.stringValue(i)
		case '{', '[':
			object := s.raw[i] == '{'
			if i, more, err = s.open(i, s.raw[i]+2); more {
				open.set(s.depth, object)
				s.depth++
			}
		default:
			i, err = s.scalar(i)
		}
		for err == nil && !more && s.depth > base {
			if i, more, err = s.next(i, open.closer(s.depth-1)); !more {
				s.depth--
			}
		}
		if err != nil || s.depth == base {
			return i, err
		}
		if open.closer(s.depth-1) == '}' {
			if _, _, i, err = s.name(i); err != nil {
				return 0, err
			}
		}
	}
}

// stringValue steps over the string value at i and looks whether it names a Secret.
func (s *scanner) stringValue(i int) (int, error) {
	end, escaped, err := s.quoted(i)
	if err == nil && (end-i == len(`"Secret"`) || end-i == len(`"SecretList"`) || escaped) {
		s.sign = s.sign || namesSecret(s.raw[i+1:end-1], escaped)
	}
	return end, err
}
