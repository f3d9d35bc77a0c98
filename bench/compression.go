package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/test/fleet"
	"github.com/vedette-io/vedette/test/fleet/sample"
	"github.com/vedette-io/vedette/wire"
)

// record is one object of the stream before compression.
type record struct {
	kind vedette.Kind
	raw  []byte
}

// records returns the records of a first sync in the order of an agent that reads four kinds
// at once, records of updates of random objects, and records of 50 pods that change repeatedly.
func records(cfg fleet.Config) (first, updates, hot []record, err error) {
	redactor, err := redact.New(redact.Config{}, tables.Projections(), vedette.HeaderAnnotations)
	if err != nil {
		return nil, nil, nil, err
	}
	cluster := sample.New(1)
	encode := func(r vedette.Resource, i int, version uint64, live bool) (record, error) {
		o, _, err := redactor.Object(nil, r, cluster.Append(nil, r.Kind, i, version))
		return record{r.Kind, wire.EncodeUpsert(o, live)}, err
	}
	left := map[vedette.Kind]int{}
	maps.Copy(left, cfg.Objects)
	for len(first) < total(cfg.Objects) {
		busy := 0
		for _, r := range sample.Kinds() {
			if left[r.Kind] == 0 || busy == 4 {
				continue
			}
			busy++
			rec, err := encode(r, cfg.Objects[r.Kind]-left[r.Kind], uint64(1000+len(first)), false)
			if err != nil {
				return nil, nil, nil, err
			}
			left[r.Kind]--
			first = append(first, rec)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for n := range 2000 {
		kind := first[random.IntN(len(first))].kind // in proportion to its objects
		r, _ := sample.Resource(kind)
		rec, err := encode(r, random.IntN(cfg.Objects[kind]), uint64(900000+n), true)
		if err != nil {
			return nil, nil, nil, err
		}
		updates = append(updates, rec)
		rec, err = encode(sample.Kinds()[1], n%hotObjects, uint64(950000+n), true)
		if err != nil {
			return nil, nil, nil, err
		}
		hot = append(hot, rec)
	}
	return first, updates, hot, nil
}

func total(objects map[vedette.Kind]int) (n int) {
	for _, of := range objects {
		n += of
	}
	return n
}

// compareCompression compresses the same records in several ways.
func (b *bench) compareCompression(cfg fleet.Config) error {
	first, updates, hot, err := records(cfg)
	if err != nil {
		return err
	}
	plain := 0
	for _, r := range first {
		plain += len(r.raw)
	}
	b.table.add(row{measure: "record, not compressed", result: fmt.Sprintf("%d bytes", plain/len(first)), ratio: "1.00 x"})
	for _, variant := range []struct {
		name string
		new  func() (compressor, error)
	}{
		{"one stream (what the wire does)", newWireStream},
		{"one stream, window 4 MiB", newStream(zstd.SpeedFastest, 4<<20)},
		{"one stream, better compression", newStream(zstd.SpeedDefault, wire.Window)},
		{"each message by itself", func() (compressor, error) { return newMessages(nil) }},
		{"each message, a dictionary per kind", func() (compressor, error) { return newMessages(dictionaries(first)) }},
	} {
		c, err := variant.new()
		if err != nil {
			return err
		}
		began := time.Now()
		whole, err := compressAll(c, first, 32) // about as many as fit into one message
		if err != nil {
			return err
		}
		perRecord := time.Since(began) / time.Duration(len(first))
		changes, err := compressAll(c, updates, 1)
		if err != nil {
			return err
		}
		repeated, err := compressAll(c, hot, 1)
		if err != nil {
			return err
		}
		b.table.add(row{measure: "compression: " + variant.name,
			result: fmt.Sprintf("%d bytes, update %d, again %d", whole/len(first), changes/len(updates), repeated/len(hot)),
			ratio:  ratio(float64(whole), float64(plain)), remark: fmt.Sprintf("%d µs per record", perRecord.Microseconds())})
	}
	return nil
}

// compressor compresses records and returns their size in bytes.
type compressor interface {
	add(r record) (int, error)
	flush() (int, error)
}

// compressAll compresses records with a flush after a fixed number of records.
func compressAll(c compressor, records []record, batch int) (total int, err error) {
	for i, r := range records {
		n, err := c.add(r)
		if err != nil {
			return 0, err
		}
		total += n
		if i%batch != batch-1 && i != len(records)-1 {
			continue
		}
		n, err = c.flush()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// wireStream is the writer of package wire.
type wireStream struct{ w wire.Writer }

func newWireStream() (compressor, error) { return &wireStream{}, nil }

func (s *wireStream) add(r record) (int, error) { return 0, s.w.Write(r.raw) }

func (s *wireStream) flush() (n int, err error) {
	pieces, err := s.w.Flush()
	for _, p := range pieces {
		n += len(p.GetZstd())
	}
	return n, err
}

// stream is wireStream with other settings.
type stream struct {
	enc *zstd.Encoder
	n   int
}

func newStream(level zstd.EncoderLevel, window int) func() (compressor, error) {
	return func() (compressor, error) {
		s := &stream{}
		var err error
		s.enc, err = zstd.NewWriter(s, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderLevel(level),
			zstd.WithEncoderCRC(false))
		return s, err
	}
}

// Write counts what the encoder writes.
func (s *stream) Write(p []byte) (int, error) {
	s.n += len(p)
	return len(p), nil
}

func (s *stream) add(r record) (int, error) {
	_, err := s.enc.Write(r.raw)
	return 0, err
}

func (s *stream) flush() (int, error) {
	err := s.enc.Flush()
	n := s.n
	s.n = 0
	return n, err
}

// messages compresses each record separately, with the dictionary of its kind if there is one.
type messages struct {
	encoders map[vedette.Kind]*zstd.Encoder
	buf      []byte
	dicts    map[vedette.Kind][]byte
}

func newMessages(dicts map[vedette.Kind][]byte) (compressor, error) {
	return &messages{encoders: map[vedette.Kind]*zstd.Encoder{}, dicts: dicts}, nil
}

// dictionaries returns a dictionary of 112 KiB for each kind from its first records. This is
// the default size of the zstd tool.
func dictionaries(records []record) map[vedette.Kind][]byte {
	dicts := map[vedette.Kind][]byte{}
	for _, r := range records {
		if d := dicts[r.kind]; len(d)+len(r.raw) < 112<<10 {
			dicts[r.kind] = append(d, r.raw...)
		}
	}
	return dicts
}

func (m *messages) add(r record) (int, error) {
	enc := m.encoders[r.kind]
	if enc == nil {
		options := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false)}
		if d := m.dicts[r.kind]; d != nil {
			options = append(options, zstd.WithEncoderDictRaw(1, d))
		}
		var err error
		enc, err = zstd.NewWriter(nil, options...)
		if err != nil {
			return 0, err
		}
		m.encoders[r.kind] = enc
	}
	m.buf = enc.EncodeAll(r.raw, m.buf[:0])
	return len(m.buf), nil
}

func (m *messages) flush() (int, error) { return 0, nil }
