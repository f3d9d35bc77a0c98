package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

func encode(t testing.TB, rec *Record) []byte {
	t.Helper()
	b, err := proto.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func upsert(name string, body []byte) *Record {
	return &Record{Account: "a", Step: &Record_Upsert{Upsert: &Upsert{Name: name, Body: body}}}
}

// servePieces serves a list of pieces, then an error.
func servePieces(list []*Data, last error) func() (*Data, error) {
	return func() (*Data, error) {
		if len(list) == 0 {
			return nil, last
		}
		d := list[0]
		list = list[1:]
		return d, nil
	}
}

func clonePieces(list []*Data) []*Data {
	var out []*Data
	for _, d := range list {
		out = append(out, proto.Clone(d).(*Data))
	}
	return out
}

func TestRecordStreamRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var w Writer
	var sent []*Record
	var list []*Data
	for i := range 300 {
		body := bytes.Repeat([]byte(fmt.Sprintf(`{"n":%d}`, i)), rnd.IntN(3000))
		rec := upsert(fmt.Sprint("o", i), body)
		sent = append(sent, rec)
		if err := w.Write(encode(t, &Record{Account: rec.Account}), encode(t, &Record{Step: rec.Step})); err != nil {
			t.Fatal(err)
		}
		finish := w.Flush
		if i%50 == 49 {
			finish = w.Close
		}
		got, err := finish()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, clonePieces(got)...)
	}
	errLost := errors.New("connection lost")
	next := servePieces(list, errLost)
	var r *Reader
	frameEnded := false
	r = NewReader(func() (*Data, error) {
		if frameEnded && r.dec != nil {
			t.Error("the reader holds a decoder while it waits for the next frame")
		}
		d, err := next()
		frameEnded = d.GetEndOfFrame()
		return d, err
	}, new(DecoderPool), nil)
	for i, want := range sent {
		var got Record
		if _, err := r.Next(&got); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if !proto.Equal(&got, want) {
			t.Fatalf("record %d differs", i)
		}
	}
	if _, err := r.Next(&Record{}); !errors.Is(err, errLost) {
		t.Errorf("after the last record: got %v, want the error of the connection", err)
	}
}

// TestFlushedRecordIsReadableImmediately checks that a record can be read as soon as
// its batch is flushed.
func TestFlushedRecordIsReadableImmediately(t *testing.T) {
	var w Writer
	var queue []*Data
	errNone := errors.New("nothing more was flushed")
	r := NewReader(func() (*Data, error) {
		if len(queue) == 0 {
			return nil, errNone
		}
		d := queue[0]
		queue = queue[1:]
		return d, nil
	}, new(DecoderPool), nil)
	for i := range 100 {
		if err := w.Write(encode(t, upsert(fmt.Sprint(i), nil))); err != nil {
			t.Fatal(err)
		}
		got, err := w.Flush()
		if err != nil {
			t.Fatal(err)
		}
		queue = append(queue, clonePieces(got)...)
		var rec Record
		if _, err := r.Next(&rec); err != nil || rec.GetUpsert().GetName() != fmt.Sprint(i) {
			t.Fatalf("record %d: got %v, %v", i, &rec, err)
		}
	}
}

func TestPieceSizeIsBounded(t *testing.T) {
	var w Writer
	noise := make([]byte, 3<<20)
	rnd := rand.NewChaCha8([32]byte{})
	_, _ = rnd.Read(noise)
	if err := w.Write(encode(t, upsert("big", noise))); err != nil {
		t.Fatal(err)
	}
	got, err := w.Flush()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range got {
		if len(d.Zstd) > MaxPiece {
			t.Fatalf("got a piece of %d bytes, more than MaxPiece", len(d.Zstd))
		}
	}
	var rec Record
	if size, err := NewReader(servePieces(clonePieces(got), io.EOF), new(DecoderPool), nil).Next(&rec); err != nil || size < len(noise) || !bytes.Equal(rec.GetUpsert().GetBody(), noise) {
		t.Errorf("got a record of %d bytes, %v", size, err)
	}
}

func TestInvalidStreamIsRejected(t *testing.T) {
	var w Writer
	_ = w.Write(bytes.Repeat([]byte{0xff}, 30))
	garbage, _ := w.Flush()
	garbage = clonePieces(garbage)
	var long Writer
	long.openFrame()
	_, _ = long.enc.Write([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	tooLong, _ := long.Flush()
	for name, tt := range map[string]struct {
		list []*Data
		want string
	}{
		"not zstd":            {[]*Data{{Zstd: []byte("GET / HTTP/1.1\r\n\r\n")}}, "decompress records"},
		"not protobuf":        {garbage, "decode record"},
		"a length of 34 GB":   {clonePieces(tooLong), "exceeds the limit"},
		"a cut frame":         {[]*Data{{Zstd: garbage[0].Zstd[:6], EndOfFrame: true}}, "decompress records"},
		"an empty last piece": {nil, "EOF"},
	} {
		_, err := NewReader(servePieces(tt.list, io.EOF), new(DecoderPool), nil).Next(&Record{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	var w Writer
	_ = w.Write(encode(f, upsert("x", []byte("{}"))))
	good, _ := w.Flush()
	f.Add(good[0].Zstd, true)
	f.Fuzz(func(t *testing.T, b []byte, end bool) {
		r := NewReader(servePieces([]*Data{{Zstd: b, EndOfFrame: end}}, io.EOF), new(DecoderPool), nil)
		defer r.Release()
		for range 100 {
			if _, err := r.Next(&Record{}); err != nil {
				return
			}
		}
	})
}

// recordingBudget records what a reader reserves.
type recordingBudget struct{ used, peak, limit int }

func (b *recordingBudget) Reserve(n int) error {
	b.used += n
	b.peak = max(b.peak, b.used)
	if b.used > b.limit {
		return errors.New("no memory")
	}
	return nil
}

func (b *recordingBudget) Release(n int) { b.used -= n }

// TestMemoryIsReservedOnlyForReceivedBytes checks that memory is reserved for received
// bytes, not for an announced size.
func TestMemoryIsReservedOnlyForReceivedBytes(t *testing.T) {
	var w Writer
	_ = w.Write() // a length of 0 begins the frame
	announced, _ := w.Flush()
	w.openFrame()
	_, _ = w.enc.Write(append(binary.AppendUvarint(nil, MaxRecord), make([]byte, 100_000)...))
	more, _ := w.Flush()
	b := &recordingBudget{limit: 64 << 20}
	r := NewReader(servePieces(append(clonePieces(announced), clonePieces(more)...), io.EOF), new(DecoderPool), b)
	if _, err := r.Next(&Record{}); err != nil {
		t.Fatal(err)
	}
	var rec Record
	if _, err := r.Next(&rec); err == nil {
		t.Fatal("got a record of 32 MiB from 100,000 bytes")
	}
	if got, want := b.peak, DecoderMemory+4*smallRecord; got > want {
		t.Errorf("reserved bytes for 100,000 received: got %d, want %d", got, want)
	}
	r.Release()
	if got := b.used; got > 4*smallRecord {
		t.Errorf("%d bytes are still reserved after Release, want 0", got)
	}
}

// TestDecompressionBombExceedsBudget reads some KiB that decompress to 32 MiB.
func TestDecompressionBombExceedsBudget(t *testing.T) {
	var w Writer
	_ = w.Write(make([]byte, 31<<20))
	bomb, _ := w.Flush()
	b := &recordingBudget{limit: 8 << 20}
	r := NewReader(servePieces(clonePieces(bomb), io.EOF), new(DecoderPool), b)
	if _, err := r.Next(&Record{}); err == nil || !strings.Contains(err.Error(), "no memory") || b.peak > 2*b.limit {
		t.Errorf("decompression bomb: got error %v with %d bytes reserved, want an error about memory", err, b.peak)
	}
}
