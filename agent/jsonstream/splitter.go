package jsonstream

import (
	"errors"
	"io"
)

const (
	// maxObjectBytes bounds one object. etcd's own limit is 1.5 MiB by default.
	maxObjectBytes = 16 << 20
	// headroom is kept free in front of the data, so that members can be written in
	// front of an object without moving the object.
	headroom = 512
)

// ErrTooLarge reports that an object did not fit and was skipped. The stream behind
// it can still be read.
var ErrTooLarge = errors.New("the object is larger than 16 MiB")

// ErrMalformed is wrapped by every error about the content of a stream.
var ErrMalformed = errors.New("an invalid response")

// Permit is the right to hold a buffer of more than Options.FreeBuffer. A Splitter uses it from one goroutine.
type Permit interface {
	// Acquire waits for the right to a buffer of size bytes. The Splitter calls it before
	// its buffer grows to that.
	Acquire(size int) error
	// StartWait notes that the Splitter waits for data from now on, while it holds a buffer.
	// The Splitter calls the returned function when the wait ends.
	StartWait() (stop func())
	// ObjectDone notes that an object was read, and reports whether the Splitter should give back
	// what it does not need, because others wait for it.
	ObjectDone() (giveBack bool)
	// Release notes that the buffer has shrunk to size bytes, or is gone.
	Release(size int)
}

// Options configure a Splitter. The zero value is valid.
type Options struct {
	// Wipe zeroes every byte of a buffer as soon as it is no longer needed, and keeps
	// the content of the stream out of error messages: for Secrets.
	Wipe bool
	// Permit bounds the buffers of all streams. Nil means no bound.
	Permit Permit
	// FreeBuffer is the largest buffer that needs no Permit, in bytes: 0, or a power of two of at
	// least 8 KiB.
	FreeBuffer int
}

// Splitter finds the extents of JSON values in a stream. It has one buffer, which
// grows up to a bound and returns to its pool when nothing in it is needed.
//
//	buf: …done… | kept | to scan | free
//	           start   pos       end
//
// It validates no more of a value than it needs to find the end. It is not safe for
// concurrent use.
type Splitter struct {
	src            io.Reader // nil if the whole value lies in buf
	pool           *BufferPool
	max            int // bytes that may be kept
	wipe           bool
	buf            []byte
	start          int
	pos            int
	end            int
	overflowed     bool   // the kept bytes exceeded max and were dropped
	overflowPrefix []byte // the beginning of the last object that was too large
	small          [64]byte

	permit      Permit // for a buffer beyond freeBuffer; nil for no bound
	freeBuffer  int
	holdsPermit bool
}

// NewSplitter returns a Splitter that reads src with buffers of pool. The caller
// must Close it, which gives the last buffer back.
func NewSplitter(src io.Reader, pool *BufferPool, o Options) *Splitter {
	return &Splitter{src: src, pool: pool, max: maxObjectBytes, wipe: o.Wipe, permit: o.Permit,
		freeBuffer: o.FreeBuffer}
}

// splitBytes returns a Splitter for a value in memory.
func splitBytes(raw []byte) Splitter { return Splitter{buf: raw, end: len(raw), max: len(raw)} }

// Close gives the buffer back. It does not close the source.
func (s *Splitter) Close() {
	s.start, s.pos = s.end, s.end
	s.releaseBuffer()
}

// TakeOverflowPrefix returns the beginning of the last object that was too large,
// and forgets it. It returns nil if the Splitter wipes its buffers.
func (s *Splitter) TakeOverflowPrefix() []byte {
	prefix := s.overflowPrefix
	s.overflowPrefix = nil
	return prefix
}

// discard drops everything up to pos.
func (s *Splitter) discard() {
	if s.wipe {
		clear(s.buf[s.start:s.pos])
	}
	s.start = s.pos
}

// releaseBuffer gives the buffer back if nothing in it is needed.
func (s *Splitter) releaseBuffer() {
	if s.buf == nil || s.start != s.end || s.src == nil {
		return
	}
	if s.wipe {
		clear(s.buf)
	}
	s.pool.put(s.buf)
	s.buf = nil
	s.start = 0
	s.pos = 0
	s.end = 0
	s.releasePermit(0)
}

// acquirePermit waits for the right to a buffer of size bytes.
func (s *Splitter) acquirePermit(size int) error {
	if s.permit == nil || size <= s.freeBuffer {
		return nil
	}
	err := s.permit.Acquire(size)
	s.holdsPermit = s.holdsPermit || err == nil
	return err
}

// releasePermit notes that the buffer has shrunk to size bytes.
func (s *Splitter) releasePermit(size int) {
	if s.holdsPermit {
		s.holdsPermit = size > s.freeBuffer
		s.permit.Release(size)
	}
}

// fill reads more data behind end. The caller must have reached end with pos. The
// error is io.EOF only if the source ended.
func (s *Splitter) fill() error {
	if s.src == nil {
		return io.EOF
	}
	if s.overflowed {
		s.discard()
	}
	if s.releaseBuffer(); s.buf == nil {
		return s.readFirst()
	}
	if s.end == len(s.buf) {
		if err := s.makeRoom(); err != nil {
			return err
		}
	}
	if s.holdsPermit {
		defer s.permit.StartWait()()
	}
	n, err := s.read(s.buf[s.end:])
	s.end += n
	return err
}

// readFirst waits for the first bytes without holding a buffer, because most feeds
// spend nearly all of their life here.
func (s *Splitter) readFirst() error {
	n, err := s.read(s.small[:])
	if n == 0 {
		return err
	}
	if err := s.acquirePermit(minBuffer); err != nil {
		return err
	}
	s.buf = s.pool.get(minBuffer)
	s.start, s.pos = headroom, headroom
	s.end = headroom + copy(s.buf[headroom:], s.small[:n])
	if s.wipe {
		clear(s.small[:])
	}
	return nil
}

// read returns at least one byte or an error. It gives up on a reader that returns
// neither a hundred times in a row.
func (s *Splitter) read(b []byte) (int, error) {
	for range 100 {
		if n, err := s.src.Read(b); n > 0 {
			return n, nil // the next read returns the error again
		} else if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// makeRoom moves the kept bytes to the front. If they fill more than half of the
// buffer, it moves them into a larger buffer. It drops them if they exceed max. If others wait
// for memory, it takes a smaller buffer after a large object.
func (s *Splitter) makeRoom() error {
	kept := s.end - s.start
	if kept > s.max {
		s.overflowed = true
		if !s.wipe {
			s.overflowPrefix = append([]byte(nil), s.buf[s.start:s.start+min(kept, 64<<10)]...)
		}
		s.discard()
		kept = 0
	}
	if s.holdsPermit && s.start > headroom && s.permit.ObjectDone() && s.shrink(kept) {
		return nil
	}
	if kept+headroom <= len(s.buf)/2 {
		s.move(s.buf)
		return nil
	}
	if err := s.acquirePermit(2 * len(s.buf)); err != nil {
		return err
	}
	s.moveInto(s.pool.get(2 * len(s.buf)))
	return nil
}

// shrink moves the kept bytes into the smallest buffer that has as much room again. It reports whether that is a smaller
// one.
func (s *Splitter) shrink(kept int) bool {
	size := max(minBuffer, s.freeBuffer)
	for size < 2*(kept+headroom) {
		size *= 2
	}
	if size >= len(s.buf) {
		return false
	}
	s.moveInto(s.pool.get(size))
	s.releasePermit(size)
	return true
}

// moveInto moves the kept bytes into another buffer and gives the old one back.
func (s *Splitter) moveInto(to []byte) {
	old := s.buf
	s.move(to)
	if s.wipe {
		clear(old)
	}
	s.pool.put(old)
}

// move copies the kept bytes to the front of a buffer, behind the headroom.
func (s *Splitter) move(to []byte) {
	kept := copy(to[headroom:], s.buf[s.start:s.end])
	if s.wipe && &to[0] == &s.buf[0] {
		clear(s.buf[max(s.start, headroom+kept):s.end])
	}
	s.pos = headroom + s.pos - s.start
	s.buf = to
	s.start = headroom
	s.end = headroom + kept
}
