package discover

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// documents reads JSON as it arrives. It holds one object at a time, of at most maxObjectBytes. It does not look at texts: who decodes an
// object finds what is wrong with it, so that one bad object does not end a list.
type documents struct {
	in      *jsontext.Decoder
	limited *limitedReader
}

func newDocuments(from io.Reader) *documents {
	limited := &limitedReader{from, maxObjectBytes}
	return &documents{jsontext.NewDecoder(limited, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)), limited}
}

// next returns the next value, until the next call.
func (d *documents) next() (jsontext.Value, error) {
	d.limited.left = maxObjectBytes
	return d.in.ReadValue()
}

// page is what a list has beside its items.
type page struct {
	kind     string
	metadata metadata
}

// readPage reads a page of a list, and calls visit with each item, which is valid during the call. The page is whole if there is no error.
func readPage(from io.Reader, visit func(item []byte) error) (page, error) {
	d := newDocuments(from)
	var p page
	hasItems := false
	if token, err := d.in.ReadToken(); err != nil || token.Kind() != '{' {
		return p, errors.Join(errors.New("the answer is not an object of JSON"), err)
	}
	for d.in.PeekKind() == '"' {
		d.limited.left = maxObjectBytes
		name, err := d.in.ReadToken()
		if err != nil {
			return p, err
		}
		switch name.String() {
		case "kind":
			err = d.decode(&p.kind)
		case "metadata":
			err = d.decode(&p.metadata)
		case "items":
			if hasItems {
				return p, errors.New("the answer has two lists of items")
			}
			hasItems, err = true, d.readItems(visit)
		default:
			_, err = d.next()
		}
		if err != nil {
			return p, err
		}
	}
	if _, err := d.in.ReadToken(); err != nil { // the end of the object
		return p, err
	}
	if _, err := d.in.ReadToken(); !errors.Is(err, io.EOF) {
		return p, errors.New("the answer does not end after the list")
	}
	if !hasItems {
		return p, fmt.Errorf("the answer is of kind %.40q and has no items: check the address and proxies", p.kind)
	}
	return p, nil
}

func (d *documents) decode(into any) error {
	value, err := d.next()
	if err != nil {
		return err
	}
	return exactjson.Unmarshal(value, into, exactjson.Limits{Bytes: maxDecodedBytes})
}

// readItems reads an array of objects. Old API servers send null for an empty one.
func (d *documents) readItems(visit func(item []byte) error) error {
	switch token, err := d.in.ReadToken(); {
	case err != nil:
		return err
	case token.Kind() == 'n':
		return nil
	case token.Kind() != '[':
		return errors.New("the items of the answer are not a list")
	}
	for d.in.PeekKind() != ']' {
		item, err := d.next()
		if err != nil {
			return err
		}
		if err := visit(item); err != nil {
			return err
		}
	}
	_, err := d.in.ReadToken()
	return err
}

// readEvent reads the next event of a watch.
func (d *documents) readEvent() (watchEvent, error) {
	value, err := d.next()
	if err != nil {
		return watchEvent{}, err
	}
	// The object is decoded later, because an error in it is not one of the watch.
	var event watchEvent
	members := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if token, err := members.ReadToken(); err != nil || token.Kind() != '{' {
		return event, errors.New("the watch sent something that is not an event")
	}
	for members.PeekKind() == '"' {
		name, err := members.ReadToken()
		if err != nil {
			return event, err
		}
		member := name.String()
		content, err := members.ReadValue()
		if err != nil {
			return event, err
		}
		switch member {
		case "type":
			if err := exactjson.Unmarshal(content, &event.kind, exactjson.Limits{}); err != nil {
				return event, fmt.Errorf("read the type of an event: %w", err)
			}
		case "object":
			event.object = content.Clone()
		}
	}
	return event, nil
}
