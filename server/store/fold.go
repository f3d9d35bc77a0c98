package store

import (
	"bytes"

	"github.com/vedette-io/vedette"
)

// A body repeats what stands in columns of its row, and of that the uids are
// what compresses worst. Folding puts one byte in the place of each such value,
// which takes some 60 bytes off a compressed Pod. The bytes are control
// characters, which JSON knows as escapes only. A body that holds one all the
// same is left as it is: whatever goes in comes out.
const (
	unfoldedPrefix = 0 // the first byte of a body that was left as it is
	foldedPrefix   = 1 // and of one that was folded
)

// foldable are the values and the byte that stands for each, which is its index
// plus one.
func foldable(o *vedette.Object) [5]string {
	return [5]string{o.UID, o.Owner.UID, o.ResourceVersion, o.Name, o.Namespace}
}

func fold(o *vedette.Object) []byte {
	if len(o.Body) == 0 {
		return nil
	}
	values := foldable(o)
	for i := range values {
		if bytes.IndexByte(o.Body, byte(i+1)) >= 0 {
			return append([]byte{unfoldedPrefix}, o.Body...)
		}
	}
	text := make([]byte, 1, len(o.Body)+1)
	text[0] = foldedPrefix
	rest := o.Body
	for len(rest) > 0 {
		at := bytes.IndexByte(rest, '"')
		if at < 0 {
			break
		}
		text = append(text, rest[:at+1]...)
		rest = rest[at+1:]
		if i := matchAtStart(rest, &values); i >= 0 {
			text = append(text, byte(i+1))
			rest = rest[len(values[i]):]
		}
	}
	return append(text, rest...)
}

// matchAtStart returns which of the values stands at the front, up to a quote; -1
// for none.
func matchAtStart(text []byte, values *[5]string) int {
	for i, v := range values {
		if n := len(v); n > 0 && n < len(text) && text[n] == '"' && string(text[:n]) == v {
			return i
		}
	}
	return -1
}

// unfold undoes it, for an object whose key, uids and version are known.
func unfold(text []byte, o *vedette.Object) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if text[0] == unfoldedPrefix {
		return text[1:], nil
	}
	values := foldable(o)
	body := make([]byte, 0, len(text)+128)
	for _, b := range text[1:] {
		if b == 0 || int(b) > len(values) {
			body = append(body, b)
			continue
		}
		body = append(body, values[b-1]...)
	}
	if text[0] != foldedPrefix {
		return nil, errDamagedColumn
	}
	return body, nil
}
