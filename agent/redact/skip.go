package redact

// nesting stores one bit for each open container, which tells whether it is an object, so
// that skip needs no stack.
type nesting [maxDepth / 64]uint64

func (n *nesting) set(depth int, object bool) {
	bit := uint64(1) << (depth & 63)
	if object {
		n[depth>>6] |= bit
	} else {
		n[depth>>6] &^= bit
	}
}

func (n *nesting) isObject(depth int) bool { return n[depth>>6]>>(depth&63)&1 == 1 }

// skip moves past the value at i. It sets s.secretNameSeen if a string value names a Secret,
// because only such a value must be walked again.
//
// It is a loop instead of a recursion and inlines name, open and next by hand, because most
// bytes of most objects pass here. That is a third faster.
func (s *scanner) skip(i int) (end int, err error) {
	raw := s.raw
	depth := s.depth
	object := false
	var nested nesting
value:
	for {
		switch c := s.at(i); c {
		case '"':
			i, err = s.stringValue(i)
			if err != nil {
				return 0, err
			}
		case '{', '[':
			if depth >= maxDepth {
				return 0, tooDeep(i)
			}
			i++
			if s.at(i) <= ' ' {
				i = s.space(i)
			}
			if s.at(i) == c+2 {
				i++
				break
			}
			object = c == '{'
			nested.set(depth, object)
			depth++
			if object {
				i, err = s.skipName(i)
				if err != nil {
					return 0, err
				}
			}
			continue
		default:
			i, err = s.scalar(i)
			if err != nil {
				return 0, err
			}
		}
		for depth > s.depth {
			if i < len(raw) && raw[i] <= ' ' {
				i = s.space(i)
			}
			switch c := s.at(i); {
			case c == ',':
				i++
				if s.at(i) <= ' ' {
					i = s.space(i)
				}
				if object {
					i, err = s.skipName(i)
					if err != nil {
						return 0, err
					}
				}
				continue value
			case c == '}' && object || c == ']' && !object:
				i++
				depth--
				object = depth > s.depth && nested.isObject(depth-1)
			default:
				return 0, notClosed(i, object)
			}
		}
		return i, nil
	}
}

// stringValue moves past the string value at i and checks whether it names a Secret.
func (s *scanner) stringValue(i int) (int, error) {
	end, escaped, err := s.quoted(i)
	if err == nil && (end-i == len(`"Secret"`) || end-i == len(`"SecretList"`) || escaped) {
		s.secretNameSeen = s.secretNameSeen || isSecretKind(s.raw[i+1:end-1], escaped)
	}
	return end, err
}
