package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Split splits a message that is larger than MaxPiece into parts, so that nobody has to
// raise the message limits of gRPC or of a proxy for a large manifest. A smaller
// message is returned as it is.
func Split(m *OperationsDown) ([]*OperationsDown, error) {
	if proto.Size(m) <= MaxPiece {
		return []*OperationsDown{m}, nil
	}
	b, err := Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("split a message: %w", err)
	}
	var parts []*OperationsDown
	for len(b) > 0 {
		n := min(len(b), MaxPiece)
		parts = append(parts, &OperationsDown{Message: &OperationsDown_Part{&Part{Bytes: b[:n:n], Last: n == len(b)}}})
		b = b[n:]
	}
	return parts, nil
}

// Joiner joins the parts of messages. The zero value is ready to use.
type Joiner struct{ parts []byte }

// Join takes the next received message. It returns the message, or the one that its
// last part completes; nil if parts are missing.
func (j *Joiner) Join(m *OperationsDown) (*OperationsDown, error) {
	part := m.GetPart()
	if part == nil {
		return m, nil
	}
	if len(j.parts)+len(part.GetBytes()) > MaxRecord {
		return nil, fmt.Errorf("join a message: it has more than %d bytes", MaxRecord)
	}
	j.parts = append(j.parts, part.GetBytes()...)
	if !part.GetLast() {
		return nil, nil
	}
	joined := &OperationsDown{}
	err := Unmarshal(j.parts, joined)
	j.parts = nil // Unmarshal copies
	if err != nil {
		return nil, fmt.Errorf("decode a message that was sent in parts: %w", err)
	}
	return joined, nil
}
