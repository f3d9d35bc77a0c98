package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// answerWindow is the compression window of an answer in bytes. It is small because
// many logs may be followed at once, and each holds about twice as much.
const answerWindow = 128 << 10

// AnswerWriter is an io.Writer that sends an answer in compressed pieces. It is not
// safe for concurrent use.
type AnswerWriter struct {
	first *AnswerPiece // identifies the operation; nil after it was sent
	send  func(*AnswerPiece) error
	enc   *zstd.Encoder
}

// NewAnswerWriter returns a writer whose first piece has the fields of first, which
// identify the operation. Write, Flush and Close return the errors of send.
func NewAnswerWriter(first *AnswerPiece, send func(*AnswerPiece) error) *AnswerWriter {
	w := &AnswerWriter{first: first, send: send, enc: newEncoder(answerWindow)}
	w.enc.Reset((*pieceWriter)(w))
	return w
}

// Write implements io.Writer. The bytes may be buffered until Flush.
func (w *AnswerWriter) Write(p []byte) (int, error) { return w.enc.Write(p) }

// Flush sends all buffered bytes, so that a reader who follows a log sees them at once.
// If nothing has been written yet, it sends the first piece, which tells the server
// that the answer has begun.
func (w *AnswerWriter) Flush() error {
	if err := w.enc.Flush(); err != nil || w.first == nil {
		return err
	}
	return w.send(w.piece())
}

// Close ends the answer. A non-nil cause tells the reader why the answer is incomplete.
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
	w.first = nil
	if p == nil {
		p = &AnswerPiece{}
	}
	return p
}

// pieceWriter is the encoder's view of an AnswerWriter.
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

// ErrIncompleteAnswer is wrapped by the errors of an AnswerReader if the sender could
// not complete the answer.
var ErrIncompleteAnswer = errors.New("the answer is incomplete")

// AnswerReader is an io.Reader of an answer. It is not safe for concurrent use. The
// caller must close it.
type AnswerReader struct {
	piece *AnswerPiece
	next  func() (*AnswerPiece, error)
	dec   *zstd.Decoder
	err   error // of next, or why the answer is incomplete
}

// NewAnswerReader returns a reader of the first piece and of those that next returns.
// io.EOF from next ends the answer.
func NewAnswerReader(first *AnswerPiece, next func() (*AnswerPiece, error)) (*AnswerReader, error) {
	r := &AnswerReader{piece: first, next: next, dec: newDecoder()}
	if err := r.dec.Reset((*pieceReader)(r)); err != nil {
		return nil, fmt.Errorf("start decompressing an answer: %w", err)
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

// Close releases the memory of the decoder.
func (r *AnswerReader) Close() { r.dec.Close() }

// pieceReader is the decoder's view of an AnswerReader.
type pieceReader AnswerReader

func (c *pieceReader) Read(b []byte) (int, error) {
	for len(c.piece.GetZstd()) == 0 {
		if reason := c.piece.GetBrokeOff(); reason != "" {
			c.err = fmt.Errorf("%w: %s", ErrIncompleteAnswer, reason)
			return 0, c.err
		}
		c.piece, c.err = c.next()
		if c.err != nil {
			return 0, c.err
		}
	}
	n := copy(b, c.piece.GetZstd())
	c.piece.Zstd = c.piece.GetZstd()[n:]
	return n, nil
}
