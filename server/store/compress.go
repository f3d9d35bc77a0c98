package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A compressed column holds the number of its dictionary plus one, as a varint,
// and then a zstd frame without the four bytes that all frames begin with. A
// leading zero says that what follows is not compressed. Nothing at all stands
// for nothing.
const (
	uncompressedPrefix = 0  // not compressed
	minCompressSize    = 24 // bytes below which a frame's own header eats the gain
	maxBody            = 64 << 20
	frameMagic         = "\x28\xb5\x2f\xfd"
)

// dictionary compresses what resembles it. Number 0 is empty and always there.
type dictionary struct {
	id       int64
	bytes    []byte
	encoders sync.Pool // of *zstd.Encoder: some hundred KB each, so none is kept for idle kinds
	decoders sync.Pool // of *zstd.Decoder
}

// compress hands each text to keep in its column's form. One encoder serves for
// all of them: to take it from the pool for each would cost a batch more than
// some of its texts.
func (d *dictionary) compress(n int, textAt func(int) []byte, emit func(int, []byte)) error {
	encoder, err := d.encoder()
	if err != nil {
		return fmt.Errorf("make a zstd encoder: %w", err)
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

// yieldEvery is how many texts are compressed before others may go on. Go takes a
// processor from whoever computes after ten milliseconds only, and looks as rarely for
// what has come over the network, while all are computing.
const yieldEvery = 8

func (d *dictionary) encodeColumn(encoder *zstd.Encoder, text []byte) []byte {
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
	start := len(frameMagic) - len(prefix) // the prefix takes the place of the magic
	copy(frame[start:], prefix)
	return frame[start:]
}

func (d *dictionary) encoder() (*zstd.Encoder, error) {
	if e, ok := d.encoders.Get().(*zstd.Encoder); ok {
		return e, nil
	}
	options := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(128 << 10)}
	if len(d.bytes) > 0 {
		options = append(options, zstd.WithEncoderDictRaw(0, d.bytes))
	}
	return zstd.NewWriter(nil, options...)
}

func (d *dictionary) decoder() (*zstd.Decoder, error) {
	if e, ok := d.decoders.Get().(*zstd.Decoder); ok {
		return e, nil
	}
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderLowmem(true)}
	if len(d.bytes) > 0 {
		options = append(options, zstd.WithDecoderDictRaw(0, d.bytes))
	}
	return zstd.NewReader(nil, options...)
}

var errDamagedColumn = errors.New("a stored compressed value is damaged")

// parseColumn returns the dictionary's number and the frame. Where nothing is
// compressed the number is -1.
func parseColumn(b []byte) (id int64, frame []byte, err error) {
	prefix, n := binary.Uvarint(b)
	if n <= 0 || prefix > 1<<62 {
		return 0, nil, errDamagedColumn
	}
	return int64(prefix) - 1, b[n:], nil
}

// decompress appends to dst, which may be nil.
func (d *dictionary) decompress(dst, frame []byte) ([]byte, error) {
	decoder, err := d.decoder()
	if err != nil {
		return nil, err
	}
	defer d.decoders.Put(decoder)
	withMagic := make([]byte, 0, len(frameMagic)+len(frame))
	withMagic = append(append(withMagic, frameMagic...), frame...)
	out, err := decoder.DecodeAll(withMagic, dst)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamagedColumn, err)
	}
	return out, nil
}
