package store

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// The head is what list views show of an object and no query filters by: its
// apiVersion, creation, owner, annotations and summary, in one compressed
// column. It is written as
//
//	1, created, apiVersion, owner's group, kind, name and uid, count of
//	annotations, their keys and values by key, summary
//
// where 1 is the version of this form, numbers are varints, and strings follow
// their length. An owner's name is often the beginning of the object's own: it
// is written as the number of bytes they share and the rest.
const headVersion = 1

func appendHead(b []byte, o *vedette.Object) []byte {
	b = append(b, headVersion)
	b = binary.AppendVarint(b, o.Created)
	b = appendString(b, o.APIVersion)
	b = appendString(b, o.Owner.Kind.Group)
	b = appendString(b, o.Owner.Kind.Name)
	shared := sharedPrefix(o.Owner.Name, o.Name)
	b = binary.AppendUvarint(b, uint64(shared))
	b = appendString(b, o.Owner.Name[shared:])
	b = appendString(b, string(packUID(o.Owner.UID)))
	b = binary.AppendUvarint(b, uint64(len(o.Annotations)))
	for _, name := range slices.Sorted(maps.Keys(o.Annotations)) {
		b = appendString(appendString(b, name), o.Annotations[name])
	}
	return appendString(b, string(o.Summary))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

var errDamagedHead = errors.New("the stored head of an object is damaged")

// parseHead fills an object whose key is known.
func parseHead(b []byte, o *vedette.Object) error {
	r := headReader{rest: string(b)}
	if len(b) == 0 || b[0] != headVersion {
		return errDamagedHead
	}
	r.rest = r.rest[1:]
	o.Created = r.varint()
	o.APIVersion = r.string()
	o.Owner.Kind.Group = r.string()
	o.Owner.Kind.Name = r.string()
	shared := r.uvarint()
	if shared > uint64(len(o.Name)) {
		return errDamagedHead
	}
	o.Owner.Name = o.Name[:shared] + r.string()
	o.Owner.UID = unpackUID([]byte(r.string()))
	o.Annotations = r.annotations()
	if summary := r.string(); summary != "" {
		o.Summary = []byte(summary)
	}
	if r.damaged || r.rest != "" {
		return errDamagedHead
	}
	return nil
}

// headReader takes values off the front. After one that is not there it is
// damaged and gives nothing but zero values.
type headReader struct {
	rest    string
	damaged bool
}

func (r *headReader) annotations() map[string]string {
	n := r.uvarint()
	if n == 0 || n > uint64(len(r.rest)) { // each takes two bytes or more
		r.damaged = r.damaged || n > 0
		return nil
	}
	annotations := make(map[string]string, n)
	for range n {
		name := r.string()
		annotations[name] = r.string()
	}
	return annotations
}

func (r *headReader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.damaged, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *headReader) uvarint() uint64 {
	v, err := binary.ReadUvarint(r)
	r.damaged = r.damaged || err != nil
	return v
}

func (r *headReader) varint() int64 {
	v, err := binary.ReadVarint(r)
	r.damaged = r.damaged || err != nil
	return v
}

// ReadByte lets encoding/binary read varints.
func (r *headReader) ReadByte() (byte, error) {
	if r.rest == "" {
		return 0, errDamagedHead
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b, nil
}

// sanitize makes text of unknown origin fit for a text column: valid UTF-8, no NUL
// (PostgreSQL takes neither) and at most so many bytes.
func sanitize(s string, maxBytes int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
	if len(s) > maxBytes {
		s = strings.ToValidUTF8(s[:maxBytes], "")
	}
	return s
}
