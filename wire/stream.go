package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// Window is the compression window of a record stream in bytes: an object that
	// changes again within the window costs little more than its difference. Each side
	// holds about twice as much memory while a stream is busy.
	Window = 512 << 10

	// MaxRecord is the maximum size of a record in bytes. etcd rejects objects larger
	// than 1.5 MiB by default; even with a raised limit, objects stay far below
	// MaxRecord.
	MaxRecord = 32 << 20

	// MaxPiece is the maximum payload of one Data message in bytes. It is small so that
	// no side has to raise gRPC's limits, and so that operations do not wait for large
	// messages on the same connection.
	MaxPiece = 64 << 10
)

// Writer encodes records as pieces of a compressed stream. It is not safe for
// concurrent use.
type Writer struct {
	buf    bytes.Buffer
	enc    *zstd.Encoder // nil while the stream is idle
	length [binary.MaxVarintLen64]byte
}

// Write appends a record, which is given as one or more parts of its encoding:
// concatenated protobuf messages are one message.
func (w *Writer) Write(parts ...[]byte) error {
	w.openFrame()
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	if _, err := w.enc.Write(binary.AppendUvarint(w.length[:0], uint64(n))); err != nil {
		return fmt.Errorf("compress record: %w", err)
	}
	for _, part := range parts {
		if _, err := w.enc.Write(part); err != nil {
			return fmt.Errorf("compress record: %w", err)
		}
	}
	return nil
}

func (w *Writer) openFrame() {
	if w.enc == nil {
		w.enc = newEncoder(Window)
		w.enc.Reset(&w.buf)
	}
}

func newEncoder(window int) *zstd.Encoder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return enc
}

// Flush returns the records since the last call as pieces to send; nil if there are
// none. The pieces are valid until the next Write.
func (w *Writer) Flush() ([]*Data, error) {
	if w.enc == nil {
		return nil, nil
	}
	if err := w.enc.Flush(); err != nil {
		return nil, fmt.Errorf("compress batch: %w", err)
	}
	return w.pieces(false), nil
}

// Close ends the zstd frame and releases the memory of the encoder. The next Write
// starts another frame.
func (w *Writer) Close() ([]*Data, error) {
	if w.enc == nil {
		return nil, nil
	}
	if err := w.enc.Close(); err != nil {
		return nil, fmt.Errorf("end compressed frame: %w", err)
	}
	w.enc = nil
	return w.pieces(true), nil
}

func (w *Writer) pieces(endFrame bool) []*Data {
	var pieces []*Data
	for w.buf.Len() > 0 {
		pieces = append(pieces, &Data{Zstd: w.buf.Next(MaxPiece)})
	}
	if endFrame && len(pieces) > 0 {
		pieces[len(pieces)-1].EndOfFrame = true
	}
	return pieces
}

// Budget limits the memory of a Reader. Reserve waits until the bytes are available.
// Its error ends the stream.
type Budget interface {
	Reserve(size int) error
	Release(size int)
}

// unlimited is the budget of readers that trust their peer.
type unlimited struct{}

func (unlimited) Reserve(int) error { return nil }
func (unlimited) Release(int)       {}

const (
	// DecoderMemory is the approximate memory in bytes that a Reader holds while a
	// frame is open: the window and blocks.
	DecoderMemory = 1 << 20
	// smallRecord is the size in bytes up to which records share one permanent buffer.
	smallRecord = 64 << 10
)

// Reader decodes records from pieces. It is not safe for concurrent use.
//
// It allocates memory only for bytes that have arrived, never because a peer announces
// a size, and reserves them in its budget first: for a frame, DecoderMemory; for a
// record larger than 64 KiB, twice its size, because it exists encoded and decoded, and
// the cost of its fields. The reservation for a record lasts until the next record is
// read.
type Reader struct {
	next      func() (*Data, error)
	pool      *DecoderPool
	mem       Budget
	reserved  int // of the budget, for the last record
	maxRecord int // in bytes
	piece     []byte
	lastPiece bool // the piece is the last of its frame
	dec       *zstd.Decoder
	buf       []byte
	err       error // the last error of next
}

// DecoderPool shares decoders between readers, because thousands of agents are idle
// most of the time. The zero value is ready to use.
type DecoderPool struct{ pool sync.Pool }

func (d *DecoderPool) get() *zstd.Decoder {
	if dec, ok := d.pool.Get().(*zstd.Decoder); ok {
		return dec
	}
	return newDecoder()
}

// NewReader returns a reader of the pieces that next returns. Next returns the errors
// of next and of the budget. A nil budget means no limit.
func NewReader(next func() (*Data, error), pool *DecoderPool, mem Budget) *Reader {
	if mem == nil {
		mem = unlimited{}
	}
	return &Reader{next: next, pool: pool, mem: mem, maxRecord: MaxRecord}
}

// SetMaxRecord sets a maximum record size below MaxRecord.
func (r *Reader) SetMaxRecord(size int) { r.maxRecord = size }

// Next decodes the next record into rec and returns its size in bytes before
// compression.
func (r *Reader) Next(rec *Record) (int, error) {
	r.mem.Release(r.reserved)
	r.reserved = 0
	size, err := r.readLength()
	if err != nil {
		return 0, err
	}
	buf, err := r.readRecord(size)
	if err != nil {
		return 0, err
	}
	cost, err := checkCost(buf, rec)
	if err != nil {
		return 0, fmt.Errorf("decode record: %w", err)
	}
	if cost > 0 {
		if err := r.mem.Reserve(cost); err != nil {
			return 0, err
		}
		r.reserved += cost
	}
	return size, unmarshal(buf, rec)
}

// readRecord reads an encoded record. The bytes are valid until the next call.
func (r *Reader) readRecord(size int) ([]byte, error) {
	if initial := min(size, smallRecord); len(r.buf) < initial {
		r.buf = make([]byte, initial)
	}
	buf := r.buf
	for filled := 0; filled < size; {
		if filled == len(buf) {
			newSize := min(2*len(buf), size)
			if err := r.mem.Reserve(2 * (newSize - len(buf))); err != nil {
				return nil, err
			}
			r.reserved += 2 * (newSize - len(buf))
			buf = slices.Grow(buf, newSize-len(buf))[:newSize]
		}
		n, err := r.read(buf[filled:min(len(buf), size)])
		if err != nil {
			return nil, err
		}
		filled += n
	}
	return buf[:size], nil
}

func (r *Reader) readLength() (int, error) {
	var size uint64
	var b [1]byte
	for shift := 0; ; shift += 7 {
		if _, err := r.read(b[:]); err != nil {
			return 0, err
		}
		size |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			break
		}
		if shift > 28 {
			return 0, errors.New("decode record: its length is not a varint")
		}
	}
	if size > uint64(r.maxRecord) {
		return 0, fmt.Errorf("decode record: its size of %d bytes exceeds the limit of %d bytes", size, r.maxRecord)
	}
	return int(size), nil
}

// read reads decompressed bytes across frames. A decoder is held only from the first
// piece of a frame to its last, so that an idle stream holds none.
func (r *Reader) read(p []byte) (int, error) {
	for {
		if r.dec == nil {
			if err := r.openFrame(); err != nil {
				return 0, err
			}
		}
		n, err := r.dec.Read(p)
		if n > 0 {
			return n, nil
		}
		if errors.Is(err, io.EOF) && r.err == nil {
			r.Release()
			continue
		}
		if r.err != nil {
			return 0, r.err
		}
		if err != nil {
			return 0, fmt.Errorf("decompress records: %w", err)
		}
	}
}

// openFrame waits for the first piece of a frame.
func (r *Reader) openFrame() error {
	if err := r.fetchPiece(); err != nil {
		return err
	}
	if err := r.mem.Reserve(DecoderMemory); err != nil {
		r.err = err
		return err
	}
	r.dec = r.pool.get()
	if err := r.dec.Reset((*frameReader)(r)); err != nil {
		return fmt.Errorf("start compressed frame: %w", err)
	}
	return nil
}

func newDecoder() *zstd.Decoder {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(Window), zstd.WithDecoderMaxMemory(2*MaxRecord))
	if err != nil {
		panic(err) // the options are constants
	}
	return dec
}

// Release returns the decoder to the pool.
func (r *Reader) Release() {
	if r.dec != nil {
		_ = r.dec.Reset(nil) // drops the reference to the source; it cannot fail
		r.pool.pool.Put(r.dec)
		r.dec, r.buf = nil, nil
		r.mem.Release(DecoderMemory)
	}
}

func (r *Reader) fetchPiece() error {
	for len(r.piece) == 0 {
		data, err := r.next()
		if err != nil {
			r.err = err
			return err
		}
		r.piece, r.lastPiece = data.GetZstd(), data.GetEndOfFrame()
	}
	return nil
}

// frameReader is the decoder's view of a Reader: the bytes of one frame, then io.EOF.
type frameReader Reader

func (s *frameReader) Read(p []byte) (int, error) {
	r := (*Reader)(s)
	if len(r.piece) == 0 {
		if r.lastPiece {
			r.lastPiece = false
			return 0, io.EOF
		}
		if err := r.fetchPiece(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.piece)
	r.piece = r.piece[n:]
	return n, nil
}
