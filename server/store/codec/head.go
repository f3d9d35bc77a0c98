package codec

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

// The head holds what list views show of an object and no query filters by:
// apiVersion, creation time, owner, annotations and summary. It is one column. Its format is
//
//	1, created, apiVersion, the owner's group, kind, name and uid, the number of
//	annotations, their keys and values sorted by key, summary
//
// The leading 1 is the version of the format, numbers are varints, and strings are
// preceded by their length. An owner's name is often a prefix of the object's own name, so it
// is written as the length of the common prefix and the rest. Objects whose owner's uid has a column
// of its own are encoded without it.
const headVersion = 1

// ErrDamagedHead means that a stored head cannot be decoded.
var ErrDamagedHead = errors.New("the stored head of an object is damaged")

// EncodeHead returns the head of an object.
func EncodeHead(o *vedette.Object) []byte {
	b := []byte{headVersion}
	b = binary.AppendVarint(b, o.Created)
	b = appendString(b, o.APIVersion)
	b = appendString(b, o.Owner.Kind.Group)
	b = appendString(b, o.Owner.Kind.Name)
	shared := sharedPrefix(o.Owner.Name, o.Name)
	b = binary.AppendUvarint(b, uint64(shared))
	b = appendString(b, o.Owner.Name[shared:])
	b = appendString(b, string(PackUID(o.Owner.UID)))
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

// DecodeHead sets the fields of an object that its head holds. The object's key must be set,
// because the owner's name refers to it.
func DecodeHead(b []byte, o *vedette.Object) error {
	r := headReader{rest: string(b)}
	if len(b) == 0 || b[0] != headVersion {
		return ErrDamagedHead
	}
	r.rest = r.rest[1:]
	o.Created = r.varint()
	o.APIVersion = r.string()
	o.Owner.Kind.Group = r.string()
	o.Owner.Kind.Name = r.string()
	shared := r.uvarint()
	if shared > uint64(len(o.Name)) {
		return ErrDamagedHead
	}
	o.Owner.Name = o.Name[:shared] + r.string()
	o.Owner.UID = UnpackUID([]byte(r.string()))
	o.Annotations = r.annotations()
	if summary := r.string(); summary != "" {
		o.Summary = []byte(summary)
	}
	if r.damaged || r.rest != "" {
		return ErrDamagedHead
	}
	return nil
}

// headReader reads values from the front of rest. After the first value that is missing,
// damaged is set and all further values are zero.
type headReader struct {
	rest    string
	damaged bool
}

func (r *headReader) annotations() map[string]string {
	n := r.uvarint()
	if n == 0 || n > uint64(len(r.rest)) { // an annotation takes at least two bytes, so a larger count is not allocated
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

// ReadByte implements io.ByteReader, which encoding/binary needs to read varints.
func (r *headReader) ReadByte() (byte, error) {
	if r.rest == "" {
		return 0, ErrDamagedHead
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b, nil
}
