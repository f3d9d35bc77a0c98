package watch

import (
	"errors"
	"io"
)

const (
	// maxObjectBytes bounds one object. etcd's own limit is 1.5 MiB by default.
	maxObjectBytes = 16 << 20
	// headroom is kept free before the data, so that members can be written in
	// front of an object without moving it.
	headroom = 512
)

// errTooBig says that a value did not fit and was passed over. What follows it
// in the stream can still be read.
var errTooBig = errors.New("an object is bigger than 16 MiB")

// errMalformed is the root of all complaints about what a stream holds.
var errMalformed = errors.New("an answer that makes no sense")

// splitter finds the extents of JSON values in a stream, with one buffer that
// grows up to a bound and goes back to its pool whenever nothing is held.
//
//	buf: …done… | kept | to scan | free
//	           start   pos       end
//
// It checks no more of a value than it needs to find its end.
type splitter struct {
	src            io.Reader // nil: all there is lies in buf
	pool           *bufferPool
	max            int // of bytes kept
	wipe           bool
	buf            []byte
	start          int
	pos            int
	end            int
	overflowed     bool   // what should have been kept was too big and is not
	overflowPrefix []byte // the beginning of what was too big, to name it by
	small          [64]byte

	permit      *largeObjectPermit // for a buffer beyond largeBuffer; nil for no bound
	holdsPermit bool               // it holds turn
}

// newSplitter reads from src with buffers of pool. Close gives the last one back.
func newSplitter(src io.Reader, pool *bufferPool) *splitter {
	return &splitter{src: src, pool: pool, max: maxObjectBytes}
}

// splitBytes reads a value that is in memory.
func splitBytes(raw []byte) splitter { return splitter{buf: raw, end: len(raw), max: len(raw)} }

func (s *splitter) close() {
	s.start, s.pos = s.end, s.end
	s.releaseBuffer()
}

// discard forgets what was scanned so far.
func (s *splitter) discard() {
	if s.wipe {
		clear(s.buf[s.start:s.pos])
	}
	s.start = s.pos
}

// releaseBuffer gives the buffer back once nothing in it is needed.
func (s *splitter) releaseBuffer() {
	if s.buf == nil || s.start != s.end || s.src == nil {
		return
	}
	if s.wipe {
		clear(s.buf)
	}
	s.pool.put(s.buf)
	s.buf, s.start, s.pos, s.end = nil, 0, 0, 0
	s.releasePermit()
}

// releasePermit gives the turn back.
func (s *splitter) releasePermit() {
	if s.holdsPermit {
		s.holdsPermit = false
		s.permit.release()
	}
}

// fill reads more behind end. It is called with pos at end. The error is io.EOF
// only where the source ends.
func (s *splitter) fill() error {
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
		defer s.permit.startWait()()
	}
	n, err := s.read(s.buf[s.end:])
	s.end += n
	return err
}

// readFirst waits for the first bytes without holding a buffer. Most feeds spend
// nearly all of their life here.
func (s *splitter) readFirst() error {
	n, err := s.read(s.small[:])
	if n == 0 {
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

// read returns at least a byte or an error. A reader that returns nothing again
// and again is given up.
func (s *splitter) read(b []byte) (int, error) {
	for range 100 {
		if n, err := s.src.Read(b); n > 0 {
			return n, nil // an error with data comes again on the next read
		} else if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// makeRoom moves what is kept to the front, into a bigger buffer where it fills
// more than half of this one. Beyond the bound it lets go of what is kept. It waits
// for a turn where the buffer becomes big.
func (s *splitter) makeRoom() error {
	kept := s.end - s.start
	if kept > s.max {
		s.overflowed = true
		if !s.wipe {
			s.overflowPrefix = append([]byte(nil), s.buf[s.start:s.start+min(kept, 64<<10)]...)
		}
		s.discard()
		kept = 0
	}
	if s.holdsPermit && kept+headroom <= largeBuffer/2 && s.permit.objectDone() {
		s.moveInto(s.pool.get(largeBuffer))
		s.releasePermit()
		return nil
	}
	if kept+headroom <= len(s.buf)/2 {
		s.move(s.buf)
		return nil
	}
	if 2*len(s.buf) > largeBuffer && s.permit != nil && !s.holdsPermit {
		if err := s.permit.acquire(); err != nil {
			return err
		}
		s.holdsPermit = true
	}
	s.moveInto(s.pool.get(2 * len(s.buf)))
	return nil
}

// moveInto moves what is kept into another buffer, and gives the old one back.
func (s *splitter) moveInto(to []byte) {
	old := s.buf
	s.move(to)
	if s.wipe {
		clear(old)
	}
	s.pool.put(old)
}

// move copies what is kept to the beginning of a buffer.
func (s *splitter) move(to []byte) {
	kept := copy(to[headroom:], s.buf[s.start:s.end])
	if s.wipe && &to[0] == &s.buf[0] {
		clear(s.buf[max(s.start, headroom+kept):s.end])
	}
	s.pos = headroom + s.pos - s.start
	s.buf, s.start, s.end = to, headroom, headroom+kept
}
