package upstream

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// mergeFunc merges the two answers of one endpoint. It keeps the bytes of what it does not change,
// so that numbers and unknown members stay as they are. An error means that the upstream
// Clouddriver's answer is not what it should be.
type mergeFunc func(m *merger) error

// merger is one merge.
type merger struct {
	ours *accountSet
	// filtersOwn is set if own may have accounts for which this server does not answer.
	filtersOwn bool
	own        []byte // nil if this server does not know what was asked for
	theirs     []byte // nil if the upstream Clouddriver does not
	out        []byte
	isNothing  bool // set if neither side knows what was asked for
	elements   int

	members *jsontext.Decoder // of member, which is called for each element
}

// errManyElements reports that an answer has more than maxElements.
var errManyElements = fmt.Errorf("the answers have more than %d elements", maxElements)

// maxElements bounds what one merge looks at, because an element of two bytes costs much more
// memory than two bytes.
const maxElements = 1 << 20

// origin is whose part of an answer is looked at.
type origin bool

// The origins.
const (
	fromOwn    origin = false
	fromTheirs origin = true
)

// part returns one side's part of the answer; nil if it has none.
func (m *merger) part(of origin) []byte {
	if of == fromTheirs {
		return m.theirs
	}
	return m.own
}

// drops reports whether one side's part of an answer leaves out an account.
func (m *merger) drops(from origin, account string) bool {
	if from == fromTheirs {
		return m.ours.hides(account)
	}
	return m.filtersOwn && !m.ours.has(account)
}

// account returns the account that a member of an object names. Objects that name none belong to no account.
func (m *merger) account(object []byte, key string) (name string, isNamed bool, err error) {
	name, err = m.stringMember(object, key)
	return name, name != "", err
}

// dropsObject reports whether one side's part of an answer leaves out an object with the member account.
func (m *merger) dropsObject(from origin, object []byte) (bool, error) {
	account, isNamed, err := m.account(object, accountKey)
	return isNamed && m.drops(from, account), err
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

// eachValue iterates over the values of an array, or over the members of an object. Values are parts of the document.
func (m *merger) eachValue(body []byte, begin jsontext.Kind, do func(name string, value []byte) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), decoderOptions)
	return scanValues(d, begin, func() ([]byte, error) { return nextValue(d, body) }, func(name string, value []byte) error {
		if err := m.count(1); err != nil {
			return err
		}
		return do(name, value)
	})
}

// count counts elements of the answers.
func (m *merger) count(n int) error {
	m.elements += n
	if m.elements > maxElements {
		return errManyElements
	}
	return nil
}

// countCommas counts what encoding/json keeps of a value at most.
func (m *merger) countCommas(value []byte) error { return m.count(bytes.Count(value, []byte(","))) }

// decoderOptions leave out the check that each name is there only once, which exactjson has made for
// the whole answer. Decoders read from a bytes.Buffer without copying.
var decoderOptions = jsontext.AllowDuplicateNames(true)

// nextValue returns the next value as a part of the document, because the decoder's own bytes are
// valid for a moment only.
func nextValue(d *jsontext.Decoder, body []byte) ([]byte, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
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

// addList appends a list.
func (m *merger) addList(all [][]byte) {
	m.out = append(m.out, '[')
	for _, element := range all {
		m.addValue(element)
	}
	m.out = append(m.out, ']')
}
