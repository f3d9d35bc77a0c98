package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A compressed column holds the id of its dictionary plus one, as a varint,
// and then a zstd frame without its first four bytes, which are the same in all frames. A
// leading zero means that the rest is not compressed. An empty column is an empty text.
const (
	uncompressedPrefix = 0
	minCompressSize    = 24 // bytes; the header of a frame takes more than compression saves in shorter texts
	frameMagic         = "\x28\xb5\x2f\xfd"
)

// MaxSize is the largest text that Decompress returns, in bytes.
const MaxSize = 64 << 20

// Dictionary compresses texts that resemble its content. Its methods may be called
// concurrently.
//
// A column has a raw dictionary of its kind and the fastest level, by processor time per Pod of 4.8 KB (two containers,
// sidecar, own uids, addresses, hashes):
//
//	raw dictionary 48 KiB, fastest        542 bytes   20 µs
//	raw dictionary 48 KiB, default        524 bytes   49 µs
//	raw dictionary 48 KiB, better         490 bytes  181 µs
//	raw dictionary  8 KiB, fastest        568 bytes   20 µs
//	trained dictionary 32 KiB, fastest  1,031 bytes   31 µs
//
// The default level spends more than half of its time copying the tables of the dictionary for each object.
type Dictionary struct {
	id       int64
	content  []byte
	encoders sync.Pool // of *zstd.Encoder: each takes some hundred KB, so idle kinds must not keep one
	decoders sync.Pool // of *zstd.Decoder
}

// NewDictionary returns a dictionary, which keeps content. Dictionary 0 has no content.
func NewDictionary(id int64, content []byte) *Dictionary {
	return &Dictionary{id: id, content: content}
}

// ID returns the id, which each column that the dictionary compresses names.
func (d *Dictionary) ID() int64 { return d.id }

// Size returns the length of the content in bytes.
func (d *Dictionary) Size() int { return len(d.content) }

// Compress calls emit with the compressed column of each of n texts. One encoder serves
// all texts, because taking it from the pool costs more than compressing a short text.
func (d *Dictionary) Compress(n int, textAt func(int) []byte, emit func(int, []byte)) error {
	encoder, err := d.encoder()
	if err != nil {
		return fmt.Errorf("create a zstd encoder: %w", err)
	}
	defer d.encoders.Put(encoder)
	for i := range n {
		emit(i, d.encodeColumn(encoder, textAt(i)))
		if i%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
	}
	return nil
}

// yieldEvery is the number of texts after which other goroutines may run. Go preempts
// a goroutine only after ten milliseconds, and polls the network as rarely while all
// processors are busy.
const yieldEvery = 8

func (d *Dictionary) encodeColumn(encoder *zstd.Encoder, text []byte) []byte {
	if len(text) == 0 {
		return []byte{}
	}
	if len(text) < minCompressSize {
		return append([]byte{uncompressedPrefix}, text...)
	}
	frame := encoder.EncodeAll(text, make([]byte, 0, 64+len(text)/8))
	prefix := binary.AppendUvarint(make([]byte, 0, 8), uint64(d.id)+1)
	if len(prefix) > len(frameMagic) {
		return append(prefix, frame[len(frameMagic):]...)
	}
	start := len(frameMagic) - len(prefix) // the prefix overwrites the end of the magic
	copy(frame[start:], prefix)
	return frame[start:]
}

func (d *Dictionary) encoder() (*zstd.Encoder, error) {
	if e, ok := d.encoders.Get().(*zstd.Encoder); ok {
		return e, nil
	}
	options := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(128 << 10)}
	if len(d.content) > 0 {
		options = append(options, zstd.WithEncoderDictRaw(0, d.content))
	}
	return zstd.NewWriter(nil, options...)
}

func (d *Dictionary) decoder() (*zstd.Decoder, error) {
	if e, ok := d.decoders.Get().(*zstd.Decoder); ok {
		return e, nil
	}
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxSize), zstd.WithDecoderLowmem(true)}
	if len(d.content) > 0 {
		options = append(options, zstd.WithDecoderDictRaw(0, d.content))
	}
	return zstd.NewReader(nil, options...)
}

// ErrDamagedColumn means that a stored column cannot be decompressed or unfolded.
var ErrDamagedColumn = errors.New("a stored compressed value is damaged")

// Uncompressed is the id that ParseColumn returns for a column that is not compressed.
const Uncompressed = -1

// ParseColumn returns the id of a column's dictionary and the frame for its Decompress. If the
// id is Uncompressed, the frame is the text itself. Both share memory with the column.
func ParseColumn(column []byte) (id int64, frame []byte, err error) {
	prefix, n := binary.Uvarint(column)
	if n <= 0 || prefix > 1<<62 {
		return 0, nil, ErrDamagedColumn
	}
	return int64(prefix) - 1, column[n:], nil
}

// Decompress appends the text of a frame to dst, which may be nil.
func (d *Dictionary) Decompress(dst, frame []byte) ([]byte, error) {
	decoder, err := d.decoder()
	if err != nil {
		return nil, fmt.Errorf("create a zstd decoder: %w", err)
	}
	defer d.decoders.Put(decoder)
	withMagic := make([]byte, 0, len(frameMagic)+len(frame))
	withMagic = append(append(withMagic, frameMagic...), frame...)
	out, err := decoder.DecodeAll(withMagic, dst)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamagedColumn, err)
	}
	return out, nil
}
