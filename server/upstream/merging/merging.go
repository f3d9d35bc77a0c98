// Package merging merges the documents of two servers that answer the same request: the local one's, and the upstream Clouddriver's. It
// keeps the bytes of what it does not change.
package merging

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// Func merges the two answers of one endpoint. It keeps the bytes of what it does not change,
// so that numbers and unknown members stay as they are. An error means that the upstream
// Clouddriver's answer is not what it should be.
type Func func(m *Merge) error

// Accounts are those for which the local server answers.
type Accounts interface {
	Has(name string) bool
	// Hides reports whether answers leave out an account of the upstream Clouddriver.
	Hides(name string) bool
}

// AccountKey is the member that names the account of most objects.
const AccountKey = "account"

// Merge is one merge.
type Merge struct {
	Ours Accounts
	// FiltersLocal is set if Local may have accounts for which this server does not answer.
	FiltersLocal bool
	Local        []byte // nil if this server does not know what was asked for
	Theirs       []byte // nil if the upstream Clouddriver does not
	Out          []byte
	IsNothing    bool // set if neither side knows what was asked for
	Elements     int  // that were looked at

	members *jsontext.Decoder // of member, which is called for each element
}

// ErrManyElements reports that an answer has more than MaxElements.
var ErrManyElements = fmt.Errorf("the answers have more than %d elements", MaxElements)

// MaxElements bounds what one merge looks at, because an element of two bytes costs much more
// memory than two bytes.
const MaxElements = 1 << 20

// origin is whose part of an answer is looked at.
type origin bool

// The origins.
const (
	fromLocal  origin = false
	fromTheirs origin = true
)

// part returns one side's part of the answer; nil if it has none.
func (m *Merge) part(of origin) []byte {
	if of == fromTheirs {
		return m.Theirs
	}
	return m.Local
}

// drops reports whether one side's part of an answer leaves out an account.
func (m *Merge) drops(from origin, account string) bool {
	if from == fromTheirs {
		return m.Ours.Hides(account)
	}
	return m.FiltersLocal && !m.Ours.Has(account)
}

// Account returns the account that a member of an object names. Objects that name none belong to no account.
func (m *Merge) Account(object []byte, key string) (name string, isNamed bool, err error) {
	name, err = m.StringMember(object, key)
	return name, name != "", err
}

// dropsObject reports whether one side's part of an answer leaves out an object with the member account.
func (m *Merge) dropsObject(from origin, object []byte) (bool, error) {
	account, isNamed, err := m.Account(object, AccountKey)
	return isNamed && m.drops(from, account), err
}

// eachElement calls do with each element of a JSON array, and checks the whole document. A nil body
// has no elements.
func (m *Merge) eachElement(body []byte, do func(element []byte) error) error {
	if body == nil {
		return nil
	}
	return m.eachValue(body, '[', func(_ string, value []byte) error { return do(value) })
}

// EachMember calls do with each member of a JSON object.
func (m *Merge) EachMember(body []byte, do func(name string, value []byte) error) error {
	if body == nil {
		return nil
	}
	return m.eachValue(body, '{', do)
}

// eachValue iterates over the values of an array, or over the members of an object. Values are parts of the document.
func (m *Merge) eachValue(body []byte, begin jsontext.Kind, do func(name string, value []byte) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), DecoderOptions)
	return scanValues(d, begin, func() ([]byte, error) { return nextValue(d, body) }, func(name string, value []byte) error {
		if err := m.Count(1); err != nil {
			return err
		}
		return do(name, value)
	})
}

// Count counts elements of the answers.
func (m *Merge) Count(n int) error {
	m.Elements += n
	if m.Elements > MaxElements {
		return ErrManyElements
	}
	return nil
}

// countCommas counts what encoding/json keeps of a value at most.
func (m *Merge) countCommas(value []byte) error { return m.Count(bytes.Count(value, []byte(","))) }

// DecoderOptions leave out the check that each name is there only once, which exactjson has made for
// the whole answer. Decoders read from a bytes.Buffer without copying.
var DecoderOptions = jsontext.AllowDuplicateNames(true)

// nextValue returns the next value as a part of the document, because the decoder's local bytes are
// valid for a moment only.
func nextValue(d *jsontext.Decoder, body []byte) ([]byte, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.InputOffset())
	return body[end-len(value) : end : end], nil
}

// StringMember returns a member of an object, or "" if it is missing or not a string.
func (m *Merge) StringMember(object []byte, key string) (string, error) {
	value, err := m.Member(object, key)
	if err != nil || len(value) == 0 || value[0] != '"' {
		return "", err
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err
}

// Member returns a member of an object, or nil if it is missing.
func (m *Merge) Member(object []byte, key string) ([]byte, error) {
	if m.members == nil {
		m.members = new(jsontext.Decoder)
	}
	d := m.members
	d.Reset(bytes.NewBuffer(object), DecoderOptions)
	if err := OpenJSON(d, '{'); err != nil {
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
func (m *Merge) addValue(value []byte) {
	if n := len(m.Out); n > 0 && m.Out[n-1] != '[' && m.Out[n-1] != '{' {
		m.Out = append(m.Out, ',')
	}
	m.Out = append(m.Out, value...)
}

func (m *Merge) addList(all [][]byte) {
	m.Out = append(m.Out, '[')
	for _, element := range all {
		m.addValue(element)
	}
	m.Out = append(m.Out, ']')
}

// Do merges both documents by a function.
func (m *Merge) Do(by Func) error {
	if m.Theirs != nil {
		// Readers take the first or the last of two members with one name: one of them could be an account of agents.
		if err := exactjson.Check(m.Theirs); err != nil {
			return fmt.Errorf("check the answer: %w", err)
		}
	}
	m.Out = make([]byte, 0, len(m.Local)+len(m.Theirs)+len("[]\n"))
	if err := by(m); err != nil || m.IsNothing {
		return err
	}
	m.Out = append(m.Out, '\n')
	return nil
}
