package merging

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// scan calls do with each element of a JSON array, or with each member of an object, while the document is being read, and
// checks the whole document: that it is UTF-8, and that no object has a member twice. Readers take the first or the last of
// two members with one name: one of them could be an account of agents. The bytes of value are valid during the call.
func Scan(document io.Reader, begin jsontext.Kind, do func(name string, value []byte) error) error {
	d := jsontext.NewDecoder(document)
	return scanValues(d, begin, func() ([]byte, error) { return d.ReadValue() }, do)
}

// scanValues calls do with the elements or members that a decoder reads by next.
func scanValues(d *jsontext.Decoder, begin jsontext.Kind, next func() ([]byte, error), do func(name string, value []byte) error) error {
	if err := OpenJSON(d, begin); err != nil {
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
		value, err := next()
		if err != nil {
			return fmt.Errorf("read a value: %w", err)
		}
		if err := do(name, value); err != nil {
			return err
		}
	}
}

// openJSON reads the first token of a document, which must be begin.
func OpenJSON(d *jsontext.Decoder, begin jsontext.Kind) error {
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
		if err != nil {
			return fmt.Errorf("read the end of a JSON document: %w", err)
		}
		return errors.New("got more after the end of a JSON document")
	}
	return nil
}
