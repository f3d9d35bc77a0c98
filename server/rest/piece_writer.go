package rest

import "net/http"

// PieceBytes is how large a piece of a response is.
const PieceBytes = 64 << 10

// PieceWriter writes a response in pieces, so that what it is made of can be freed meanwhile. It ignores errors, because they mean that
// the client is gone.
type PieceWriter struct {
	W      http.ResponseWriter
	B      []byte
	failed bool
}

// Flush writes the buffer if it has more than minBytes.
func (p *PieceWriter) Flush(minBytes int) {
	if len(p.B) <= minBytes {
		return
	}
	if !p.failed {
		_, err := p.W.Write(p.B)
		p.failed = err != nil
	}
	p.B = p.B[:0]
}
