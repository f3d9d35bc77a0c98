package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Split cuts a message that is bigger than MaxPiece into parts, so that nobody has
// to raise a limit for a big manifest. One that is smaller stays whole.
func Split(m *OperationsDown) ([]*OperationsDown, error) {
	if proto.Size(m) <= MaxPiece {
		return []*OperationsDown{m}, nil
	}
	b, err := Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cut a message: %w", err)
	}
	var parts []*OperationsDown
	for len(b) > 0 {
		n := min(len(b), MaxPiece)
		parts = append(parts, &OperationsDown{Message: &OperationsDown_Part{&Part{Bytes: b[:n:n], Last: n == len(b)}}})
		b = b[n:]
	}
	return parts, nil
}

// Joiner puts the parts of messages together. The zero value is ready.
type Joiner struct{ parts []byte }

// Join takes the next message as it came and returns it, or the one that its
// last part completes; nil while parts are missing.
func (j *Joiner) Join(m *OperationsDown) (*OperationsDown, error) {
	part := m.GetPart()
	if part == nil {
		return m, nil
	}
	if len(j.parts)+len(part.GetBytes()) > MaxRecord {
		return nil, fmt.Errorf("put a message together: it has more than %d bytes", MaxRecord)
	}
	j.parts = append(j.parts, part.GetBytes()...)
	if !part.GetLast() {
		return nil, nil
	}
	joined := &OperationsDown{}
	err := Unmarshal(j.parts, joined)
	j.parts = nil // the message has copies of its bytes
	if err != nil {
		return nil, fmt.Errorf("decode a message of many parts: %w", err)
	}
	return joined, nil
}
