package redact

// ObjectMeta is the result of ReadMetadata. Fields that the object lacks are empty.
type ObjectMeta struct {
	UID             string
	ResourceVersion string
	Namespace       string
	Name            string
}

// ReadMetadata reads only the metadata of an object, for BOOKMARK and DELETED events. It does
// not validate anything else. So it also reads objects that Redactor.Object rejects, for
// example because of their depth: the name of such an object is needed when it is deleted.
func ReadMetadata(raw []byte) (ObjectMeta, error) {
	m := metadataScanner{scanner: scanner{raw: raw}}
	i := m.space(0)
	if m.at(i) != '{' {
		return ObjectMeta{}, &syntaxError{i, "an object"}
	}
	_, err := m.members(i, m.readRoot)
	return m.metadata, err
}

type metadataScanner struct {
	scanner
	metadata ObjectMeta
	done     bool
}

// members calls take for each member of the object at i, until take is done.
func (m *metadataScanner) members(i int, handle func(name []byte, value int) (int, error)) (int, error) {
	i, more, err := m.open(i, '}')
	for more && err == nil && !m.done {
		name, escaped, value, nameErr := m.name(i)
		if nameErr != nil {
			return 0, nameErr
		}
		if escaped {
			name = unescape(nil, name)
		}
		i, err = handle(name, value)
		if err == nil && !m.done {
			i, more, err = m.next(i, '}')
		}
	}
	return i, err
}

// skip moves past the value at i, however deep it is.
func (m *metadataScanner) skip(i int) (end int, err error) {
	for depth := 0; ; {
		switch c := m.at(i); {
		case c == '{' || c == '[':
			depth++
			i++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
			i++
		case depth > 0 && (c <= ' ' && c > 0 || c == ',' || c == ':'):
			i++
			continue
		default:
			i, err = m.scalar(i)
			if err != nil {
				return 0, err
			}
		}
		if depth == 0 {
			return i, nil
		}
	}
}

func (m *metadataScanner) readRoot(name []byte, value int) (int, error) {
	if string(name) != "metadata" || m.at(value) != '{' {
		return m.skip(value)
	}
	end, err := m.members(value, m.readMetadata)
	m.done = true
	return end, err
}

func (m *metadataScanner) readMetadata(name []byte, value int) (int, error) {
	var target *string
	switch string(name) {
	case "uid":
		target = &m.metadata.UID
	case "resourceVersion":
		target = &m.metadata.ResourceVersion
	case "namespace":
		target = &m.metadata.Namespace
	case "name":
		target = &m.metadata.Name
	}
	if target == nil || m.at(value) != '"' {
		return m.skip(value)
	}
	end, escaped, err := m.quoted(value)
	if err == nil {
		*target = m.text(value, end, escaped)
	}
	return end, err
}

func (m *metadataScanner) text(i, end int, escaped bool) string {
	text := m.raw[i+1 : end-1]
	if escaped {
		text = unescape(nil, text)
	}
	return string(text)
}
