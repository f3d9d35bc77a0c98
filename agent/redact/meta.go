package redact

// Header is what Meta finds. Fields that the object lacks are empty.
type Header struct {
	UID              string
	ResourceVersion  string
	Namespace        string
	Name             string
	InitialEventsEnd bool // a bookmark with which the API server ends a streamed list
}

// initialEvents is the annotation of such a bookmark.
const initialEvents = "k8s.io/initial-events-end"

// Meta reads an object's metadata and no more of it than that: for BOOKMARK and
// DELETED events. What stands behind metadata is not even checked to be JSON, nor
// is what stands before the members that are read more than passed over. So it
// reads objects that Redactor.Object refuses, as for their depth: they must be
// known by name when they go.
func Meta(raw []byte) (Header, error) {
	m := metaScan{scanner: scanner{raw: raw}}
	i := m.space(0)
	if m.at(i) != '{' {
		return Header{}, &syntaxError{i, "an object"}
	}
	_, err := m.members(i, m.root)
	return m.header, err
}

type metaScan struct {
	scanner
	header Header
	done   bool
}

// members calls take for every member of the object at i, until it is done.
func (m *metaScan) members(i int, take func(name []byte, value int) (int, error)) (int, error) {
	i, more, err := m.open(i, '}')
	for more && err == nil && !m.done {
		name, escaped, value, bad := m.name(i)
		if bad != nil {
			return 0, bad
		}
		if escaped {
			name = unescape(nil, name)
		}
		if i, err = take(name, value); err == nil && !m.done {
			i, more, err = m.next(i, '}')
		}
	}
	return i, err
}

// skip steps over the value at i, however deep it is.
func (m *metaScan) skip(i int) (end int, err error) {
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
			if i, err = m.scalar(i); err != nil {
				return 0, err
			}
		}
		if depth == 0 {
			return i, nil
		}
	}
}

func (m *metaScan) root(name []byte, value int) (int, error) {
	if string(name) != "metadata" || m.at(value) != '{' {
		return m.skip(value)
	}
	end, err := m.members(value, m.metadata)
	m.done = true
	return end, err
}

func (m *metaScan) metadata(name []byte, value int) (int, error) {
	var into *string
	switch string(name) {
	case "uid":
		into = &m.header.UID
	case "resourceVersion":
		into = &m.header.ResourceVersion
	case "namespace":
		into = &m.header.Namespace
	case "name":
		into = &m.header.Name
	case "annotations":
		if m.at(value) == '{' {
			return m.members(value, m.annotation)
		}
	}
	if into == nil || m.at(value) != '"' {
		return m.skip(value)
	}
	end, escaped, err := m.quoted(value)
	if err == nil {
		*into = m.text(value, end, escaped)
	}
	return end, err
}

func (m *metaScan) annotation(name []byte, value int) (int, error) {
	end, err := m.skip(value)
	if err == nil && string(name) == initialEvents {
		m.header.InitialEventsEnd = string(m.raw[value:end]) == `"true"`
	}
	return end, err
}

func (m *metaScan) text(i, end int, escaped bool) string {
	text := m.raw[i+1 : end-1]
	if escaped {
		text = unescape(nil, text)
	}
	return string(text)
}
