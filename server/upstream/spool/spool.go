// Package spool keeps answers in memory until it is known what they become: compressed, and paid for.
package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"
)

// blockBytes is how much is compressed at a time. An answer that is smaller stays as it is.
const blockBytes = 64 << 10

// firstBytes is what the block takes at first. It grows by doubling.
const firstBytes = 4 << 10

// scratch has buffers for one compressed block.
var scratch = sync.Pool{New: func() any { b := make([]byte, s2.MaxEncodedLen(blockBytes)); return &b }}

// Spool is an answer that is kept. Write it first; then it can be read, also concurrently.
type Spool struct {
	ctx    context.Context //nolint:containedctx // an io.Writer has no other way to stop waiting
	grant  *Grant
	blocks [][]byte // compressed
	block  []byte   // the last one, as it is
	size   int64
	digest *xxhash.Digest
}

// New returns an empty spool that pays with a grant. Writes wait for memory until ctx ends. The caller releases the grant, after
// which the spool must not be used.
func New(ctx context.Context, grant *Grant) *Spool {
	return &Spool{ctx: ctx, grant: grant, digest: xxhash.New()}
}

// Write implements io.Writer. Its error says that there is no memory.
func (s *Spool) Write(p []byte) (int, error) {
	written := len(p)
	s.size += int64(written)
	_, _ = s.digest.Write(p) // never fails
	for len(p) > 0 {
		n := min(len(p), blockBytes-len(s.block))
		if err := s.reserve(len(s.block) + n); err != nil {
			return 0, err
		}
		s.block = append(s.block, p[:n]...)
		if p = p[n:]; len(s.block) == blockBytes {
			if err := s.compress(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

// reserve makes room for n bytes of the last block.
func (s *Spool) reserve(n int) error {
	if n <= cap(s.block) {
		return nil
	}
	size := firstBytes
	for size < n {
		size *= 2
	}
	if err := s.grant.Grow(s.ctx, int64(size-cap(s.block))); err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}
	s.block = append(make([]byte, 0, size), s.block...)
	return nil
}

// compress adds the last block to the compressed ones.
func (s *Spool) compress() error {
	buffer := scratch.Get().(*[]byte)
	defer scratch.Put(buffer)
	compressed := s2.Encode(*buffer, s.block)
	if err := s.grant.Grow(s.ctx, int64(len(compressed))); err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}
	s.blocks = append(s.blocks, bytes.Clone(compressed))
	s.block = s.block[:0]
	return nil
}

// Size returns how many bytes were written.
func (s *Spool) Size() int64 { return s.size }

// Held returns how many bytes the spool takes in memory.
func (s *Spool) Held() int64 {
	n := int64(cap(s.block))
	for _, b := range s.blocks {
		n += int64(len(b))
	}
	return n
}

// Sum returns a digest of what was written.
func (s *Spool) Sum() uint64 { return s.digest.Sum64() }

// WriteTo implements io.WriterTo.
func (s *Spool) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, s.Reader()) }

// Reader returns a reader of all that was written.
func (s *Spool) Reader() io.Reader { return &reader{spool: s} }

type reader struct {
	spool   *Spool
	next    int
	scratch []byte
	rest    []byte
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// WriteTo implements io.WriterTo, so that io.Copy needs no buffer.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for {
		if len(r.rest) == 0 {
			switch err := r.advance(); {
			case errors.Is(err, io.EOF):
				return total, nil
			case err != nil:
				return total, err
			}
		}
		n, err := w.Write(r.rest)
		total += int64(n)
		if r.rest = r.rest[n:]; err != nil {
			return total, err
		}
	}
}

// advance reads the next block, or returns io.EOF.
func (r *reader) advance() error {
	switch n := len(r.spool.blocks); {
	case r.next < n:
		decoded, err := s2.Decode(r.scratch, r.spool.blocks[r.next])
		if err != nil {
			return fmt.Errorf("read what was kept of an answer: %w", err)
		}
		r.scratch, r.rest = decoded, decoded
	case r.next == n && len(r.spool.block) > 0:
		r.rest = r.spool.block
	default:
		return io.EOF
	}
	r.next++
	return nil
}

// partBytes bounds a part of what Encode returns.
const partBytes = 1 << 20

// Encode compresses what a reader returns to parts of at most 1 MiB. A reader that fails ends the last part.
func Encode(from io.Reader) [][]byte {
	var parts [][]byte
	var compressed bytes.Buffer
	w := s2.NewWriter(&compressed, s2.WriterConcurrency(1))
	_, _ = io.Copy(w, from)
	_ = w.Close() // a buffer does not fail
	for part := compressed.Next(partBytes); len(part) > 0; part = compressed.Next(partBytes) {
		parts = append(parts, bytes.Clone(part))
	}
	return parts
}

// Decode returns a reader of what Encode was given.
func Decode(parts [][]byte) io.Reader {
	readers := make([]io.Reader, len(parts))
	for i, part := range parts {
		readers[i] = bytes.NewReader(part)
	}
	return s2.NewReader(io.MultiReader(readers...))
}
