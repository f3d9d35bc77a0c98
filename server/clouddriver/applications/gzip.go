package applications

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"
)

// A gzip file is a header, a stream of DEFLATE, and a checksum. The stream can be put together from
// parts that were compressed on their own, if each ends at a byte and refers to nothing before
// it. So after a change of a large answer only the part that changed is compressed again.
// Several gzip files in a row would be simpler, but not all clients read more than the first.

const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" // no name, no time, unknown system

// emptyFinalBlock ends a stream of DEFLATE: the last block, which has fixed codes, and the code
// that ends it.
const emptyFinalBlock = "\x03\x00"

// deflaters hold *flate.Writer, because a new one takes more memory than most answers.
var deflaters sync.Pool //nolint:gochecknoglobals // a pool is of use only if all callers share it

// deflate compresses a part of a stream.
func deflate(part []byte) ([]byte, error) {
	b := sliceWriter(make([]byte, 0, len(part)/8))
	w, ok := deflaters.Get().(*flate.Writer)
	if !ok {
		var err error
		if w, err = flate.NewWriter(nil, flate.BestSpeed); err != nil {
			return nil, fmt.Errorf("compress a response: %w", err)
		}
	}
	defer deflaters.Put(w)
	w.Reset(&b)
	if _, err := w.Write(part); err != nil {
		return nil, fmt.Errorf("compress a response: %w", err)
	}
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("compress a response: %w", err)
	}
	return b, nil
}

// sliceWriter appends what is written.
type sliceWriter []byte

func (s *sliceWriter) Write(p []byte) (int, error) {
	*s = append(*s, p...)
	return len(p), nil
}

// joinGzip returns the gzip file of a body from the results of deflate for its parts.
func joinGzip(body []byte, parts ...[]byte) []byte {
	size := len(gzipHeader) + len(emptyFinalBlock) + 8
	for _, part := range parts {
		size += len(part)
	}
	file := append(make([]byte, 0, size), gzipHeader...)
	for _, part := range parts {
		file = append(file, part...)
	}
	file = append(file, emptyFinalBlock...)
	file = binary.LittleEndian.AppendUint32(file, crc32.ChecksumIEEE(body))
	return binary.LittleEndian.AppendUint32(file, uint32(len(body))) //nolint:gosec // modulo 2^32, as the format has it
}

func compress(body []byte) ([]byte, error) {
	part, err := deflate(body)
	return joinGzip(body, part), err
}
