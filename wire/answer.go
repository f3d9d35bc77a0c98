package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// answerWindow is how far back the compression of an answer reaches. Logs that
// are followed may be many, and each holds about twice as much.
const answerWindow = 128 << 10

// AnswerWriter sends what is written to it as pieces of an answer, compressed.
// It is for one goroutine.
type AnswerWriter struct {
	first *AnswerPiece // says what is answered; nil once it was sent
	send  func(*AnswerPiece) error
	enc   *zstd.Encoder
}

// NewAnswerWriter returns a writer whose first piece names what is answered, as
// first does. An error of send is returned by Write, Flush and Close.
func NewAnswerWriter(first *AnswerPiece, send func(*AnswerPiece) error) *AnswerWriter {
	w := &AnswerWriter{first: first, send: send, enc: newEncoder(answerWindow)}
	w.enc.Reset((*pieceWriter)(w))
	return w
}

// Write implements io.Writer. What it takes may wait until Flush.
func (w *AnswerWriter) Write(p []byte) (int, error) { return w.enc.Write(p) }

// Flush sends all that was written, so that who follows a log sees it at once. Of
// an answer that is empty so far it tells that it has begun.
func (w *AnswerWriter) Flush() error {
	if err := w.enc.Flush(); err != nil || w.first == nil {
		return err
	}
	return w.send(w.piece())
}

// Close ends the answer. An error that is given tells the reader why it is not
// complete.
func (w *AnswerWriter) Close(cause error) error {
	if cause == nil {
		return w.enc.Close()
	}
	if err := w.enc.Flush(); err != nil {
		return err
	}
	p := w.piece()
	p.BrokeOff = cause.Error()
	return w.send(p)
}

func (w *AnswerWriter) piece() *AnswerPiece {
	p := w.first
	if w.first = nil; p == nil {
		p = &AnswerPiece{}
	}
	return p
}

// pieceWriter is a writer as its encoder sees it.
type pieceWriter AnswerWriter

func (p *pieceWriter) Write(b []byte) (int, error) {
	written := len(b)
	for len(b) > 0 {
		piece := (*AnswerWriter)(p).piece()
		piece.Zstd = b[:min(len(b), MaxPiece)]
		if err := p.send(piece); err != nil {
			return 0, err
		}
		b = b[len(piece.GetZstd()):]
	}
	return written, nil
}

// ErrIncompleteAnswer is in the chain of what an AnswerReader says of an answer that its
// sender could not complete.
var ErrIncompleteAnswer = errors.New("the answer broke off")

// AnswerReader reads an answer's pieces as what they hold. It is for one
// goroutine, which closes it.
type AnswerReader struct {
	piece *AnswerPiece
	next  func() (*AnswerPiece, error)
	dec   *zstd.Decoder
	err   error // of next, or why the answer broke off
}

// NewAnswerReader returns a reader that begins with the first piece and goes on
// with those of next, whose io.EOF ends it.
func NewAnswerReader(first *AnswerPiece, next func() (*AnswerPiece, error)) (*AnswerReader, error) {
	r := &AnswerReader{piece: first, next: next, dec: newDecoder()}
	if err := r.dec.Reset((*pieceReader)(r)); err != nil {
		return nil, fmt.Errorf("begin an answer: %w", err)
	}
	return r, nil
}

// Read implements io.Reader.
func (r *AnswerReader) Read(p []byte) (int, error) {
	n, err := r.dec.Read(p)
	switch {
	case err == nil || n > 0:
		return n, nil
	case r.err != nil && r.err != io.EOF:
		return 0, r.err
	case err == io.EOF:
		return 0, io.EOF
	}
	return 0, fmt.Errorf("decompress an answer: %w", err)
}

// Close lets go of the memory.
func (r *AnswerReader) Close() { r.dec.Close() }

// pieceReader is a reader as its decoder sees it.
type pieceReader AnswerReader

func (c *pieceReader) Read(b []byte) (int, error) {
	for len(c.piece.GetZstd()) == 0 {
		if reason := c.piece.GetBrokeOff(); reason != "" {
			c.err = fmt.Errorf("%w: %s", ErrIncompleteAnswer, reason)
			return 0, c.err
		}
		if c.piece, c.err = c.next(); c.err != nil {
			return 0, c.err
		}
	}
	n := copy(b, c.piece.GetZstd())
	c.piece.Zstd = c.piece.GetZstd()[n:]
	return n, nil
}
