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
	// Window is how far back a record stream's compression reaches: an object
	// that changes again within that many bytes costs little more than its
	// difference. Each side holds about twice as much while a stream is busy.
	Window = 512 << 10

	// MaxRecord bounds one record. etcd refuses objects beyond 1.5 MiB by default;
	// what an API server adds and what installations raise stays far below this.
	MaxRecord = 32 << 20

	// MaxPiece bounds the payload of one Data message, so that neither side ever
	// has to raise gRPC's limits and operations find the connection free.
	MaxPiece = 64 << 10
)

// Writer turns records into pieces of a compressed stream. It is for one
// goroutine.
type Writer struct {
	buf    bytes.Buffer
	enc    *zstd.Encoder // nil while the stream idles
	length [binary.MaxVarintLen64]byte
}

// Write appends a record, given as one or more parts of its encoding: protobuf
// messages that stand one after the other are one message.
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

// Flush returns what was written since the last call, as pieces that can be
// sent, or nothing. The pieces are valid until the next Write.
func (w *Writer) Flush() ([]*Data, error) {
	if w.enc == nil {
		return nil, nil
	}
	if err := w.enc.Flush(); err != nil {
		return nil, fmt.Errorf("compress batch: %w", err)
	}
	return w.pieces(false), nil
}

// Close ends the zstd frame and gives the compression's memory back. The next
// Write begins another frame.
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

// Budget is what a Reader takes memory from. Reserve waits until there is room, or
// fails, which ends the stream.
type Budget interface {
	Reserve(bytes int) error
	Release(bytes int)
}

// unlimited is a budget of those who trust their peer.
type unlimited struct{}

func (unlimited) Reserve(int) error { return nil }
func (unlimited) Release(int)       {}

const (
	// DecoderMemory is about what a Reader holds from a frame's beginning to its end,
	// in bytes: the window, and blocks.
	DecoderMemory = 1 << 20
	// smallRecord is a size in bytes up to which records share a buffer that stays.
	smallRecord = 64 << 10
)

// Reader turns pieces back into records. It is for one goroutine.
//
// It takes no memory because a peer says that there is something to come, only for
// what has come, and asks its budget before: for a frame, DecoderMemory; for a
// record beyond 64 KiB, twice its bytes until the next is asked for, because it is
// there encoded and decoded, and what its fields take.
type Reader struct {
	next      func() (*Data, error)
	pool      *DecoderPool
	mem       Budget
	reserved  int // of the budget, for the last record
	maxRecord int // bytes of a record
	piece     []byte
	lastPiece bool // the piece is the last of its frame
	dec       *zstd.Decoder
	buf       []byte
	err       error // what next said last
}

// DecoderPool lends decoders to readers. Thousands of agents that are idle most of
// the time share a few. The zero value is ready.
type DecoderPool struct{ pool sync.Pool }

func (d *DecoderPool) get() *zstd.Decoder {
	if dec, ok := d.pool.Get().(*zstd.Decoder); ok {
		return dec
	}
	return newDecoder()
}

// NewReader returns a reader of the pieces that next gives. An error of next is
// returned by Next, as is one of the budget, which may be nil for no limit.
func NewReader(next func() (*Data, error), pool *DecoderPool, mem Budget) *Reader {
	if mem == nil {
		mem = unlimited{}
	}
	return &Reader{next: next, pool: pool, mem: mem, maxRecord: MaxRecord}
}

// SetMaxRecord bounds one record to fewer bytes than MaxRecord.
func (r *Reader) SetMaxRecord(bytes int) { r.maxRecord = bytes }

// Next decodes the next record into rec and returns the record's size in
// bytes before compression.
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

// readRecord reads an encoded record. Its bytes are valid until the next.
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
			return 0, errors.New("decode record: its length is no varint")
		}
	}
	if size > uint64(r.maxRecord) {
		return 0, fmt.Errorf("decode record: %d bytes are more than the %d that a record may have", size, r.maxRecord)
	}
	return int(size), nil
}

// read reads decompressed bytes across frames: a decoder lives from a frame's
// first piece to its last, so that an idle stream holds none.
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

// openFrame waits for a frame's first piece.
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
		return fmt.Errorf("begin compressed frame: %w", err)
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

// Release gives the decompression's memory back.
func (r *Reader) Release() {
	if r.dec != nil {
		_ = r.dec.Reset(nil) // lets go of the source; it can't fail
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

// frameReader is the reader as its decoder sees it: one frame's bytes, then EOF.
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
