package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// mergeFunc merges the two answers of one endpoint. It keeps the bytes of what it does not change,
// so that numbers and unknown members stay as they are. An error means that the upstream
// Clouddriver's answer is not what it should be.
type mergeFunc func(m *merger) error

// merger is one merge.
type merger struct {
	accounts  *accountSet
	own       []byte // nil if this server does not know what was asked for
	theirs    []byte
	out       []byte
	isNothing bool // set if neither side knows what was asked for
	elements  int

	members *jsontext.Decoder // of member, which is called for each element
}

// maxElements bounds what one merge looks at, because an element of two bytes costs much more
// memory than two bytes.
const maxElements = 1 << 20

// hasOur reports whether a member of an object names an account of agents, or one that is taken for it.
func (m *merger) hasOur(object []byte, key string) (bool, error) {
	account, err := m.stringMember(object, key)
	return m.accounts.hides(account), err
}

// eachElement calls do with each element of a JSON array, and checks the whole document. A nil body
// has no elements.
func (m *merger) eachElement(body []byte, do func(element []byte) error) error {
	if body == nil {
		return nil
	}
	return m.eachValue(body, '[', func(_ string, value []byte) error { return do(value) })
}

// eachMember calls do with each member of a JSON object.
func (m *merger) eachMember(body []byte, do func(name string, value []byte) error) error {
	if body == nil {
		return nil
	}
	return m.eachValue(body, '{', do)
}

// eachValue iterates over the values of an array, or over the members of an object.
func (m *merger) eachValue(body []byte, begin jsontext.Kind, do func(name string, value []byte) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), decoderOptions)
	if err := openJSON(d, begin); err != nil {
		return err
	}
	for {
		var name string
		switch kind := d.PeekKind(); {
		case kind == ']' || kind == '}':
			return closeJSON(d)
		case begin == '{':
			token, err := d.ReadToken()
			if err != nil {
				return fmt.Errorf("read the name of a member: %w", err)
			}
			name = token.String()
		}
		value, err := nextValue(d, body)
		if err != nil {
			return err
		}
		if err := m.count(1); err != nil {
			return err
		}
		if err := do(name, value); err != nil {
			return err
		}
	}
}

// count counts elements of the answers.
func (m *merger) count(n int) error {
	m.elements += n
	if m.elements > maxElements {
		return fmt.Errorf("the answers have more than %d elements", maxElements)
	}
	return nil
}

// countCommas counts what encoding/json keeps of a value at most.
func (m *merger) countCommas(value []byte) error { return m.count(bytes.Count(value, []byte(","))) }

// decoderOptions leave out the check that each name is there only once, which exactjson has made for
// the whole answer. Decoders read from a bytes.Buffer without copying.
var decoderOptions = jsontext.AllowDuplicateNames(true)

// openJSON reads the first token of a document, which must be begin.
func openJSON(d *jsontext.Decoder, begin jsontext.Kind) error {
	token, err := d.ReadToken()
	switch {
	case err != nil:
		return fmt.Errorf("read a JSON document: %w", err)
	case token.Kind() != begin:
		return fmt.Errorf("got JSON that begins with %v, want %v", token.Kind(), begin)
	}
	return nil
}

// closeJSON reads the last token of a document, and checks that nothing follows.
func closeJSON(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return fmt.Errorf("read the end of a JSON document: %w", err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("got more after the end of a JSON document")
	}
	return nil
}

// nextValue returns the next value as a part of the document, because the decoder's own bytes are
// valid for a moment only.
func nextValue(d *jsontext.Decoder, body []byte) ([]byte, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, fmt.Errorf("read a value: %w", err)
	}
	end := int(d.InputOffset())
	return body[end-len(value) : end : end], nil
}

// stringMember returns a member of an object, or "" if it is missing or not a string.
func (m *merger) stringMember(object []byte, key string) (string, error) {
	value, err := m.member(object, key)
	if err != nil || len(value) == 0 || value[0] != '"' {
		return "", err
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err
}

// member returns a member of an object, or nil if it is missing.
func (m *merger) member(object []byte, key string) ([]byte, error) {
	if m.members == nil {
		m.members = new(jsontext.Decoder)
	}
	d := m.members
	d.Reset(bytes.NewBuffer(object), decoderOptions)
	if err := openJSON(d, '{'); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("read the name of a member: %w", err)
		}
		if name.String() == key {
			return nextValue(d, object)
		}
		if err := d.SkipValue(); err != nil {
			return nil, fmt.Errorf("read a member: %w", err)
		}
	}
	return nil, nil
}

// addValue appends a value, with a comma if it is not the first of its array or object.
func (m *merger) addValue(value []byte) {
	if n := len(m.out); n > 0 && m.out[n-1] != '[' && m.out[n-1] != '{' {
		m.out = append(m.out, ',')
	}
	m.out = append(m.out, value...)
}

// addMember appends a member to an object.
func (m *merger) addMember(name string, value []byte) error {
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		return fmt.Errorf("write the name of a member: %w", err)
	}
	m.addValue(quoted)
	m.out = append(append(m.out, ':'), value...)
	return nil
}
