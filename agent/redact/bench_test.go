package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/vedette-io/vedette"
)

func benchmarkObject(b *testing.B, c Config, projections []vedette.Projection) {
	raw := typicalPod(b)
	r, err := New(c, projections, vedette.HeaderAnnotations)
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	var o vedette.Object
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		var dst []byte
		o, dst, err = r.Object(buf[:0], pods, raw)
		if err != nil {
			b.Fatal(err)
		}
		buf = dst
	}
	b.ReportMetric(float64(len(o.Body)), "body-bytes")
}

func BenchmarkObject(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkObject(b, Config{}, nil) })
	b.Run("projections", func(b *testing.B) { benchmarkObject(b, Config{}, podProjections) })
	b.Run("projections and rules", func(b *testing.B) {
		benchmarkObject(b, Config{Environment: []string{"*PASSWORD*", "*TOKEN*"}, Annotations: []string{"*secret*"}}, podProjections)
	})
	b.Run("encoding json map", func(b *testing.B) {
		raw := typicalPod(b)
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			var m map[string]any
			if err := json.Unmarshal(raw, &m); err != nil {
				b.Fatal(err)
			}
			delete(m["metadata"].(map[string]any), "managedFields")
			if _, err := json.Marshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("jsontext values", func(b *testing.B) {
		raw := typicalPod(b)
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		var out bytes.Buffer
		for b.Loop() {
			out.Reset()
			if err := copyWithoutManagedFields(jsontext.NewEncoder(&out), jsontext.NewDecoder(bytes.NewReader(raw))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding json valid", func(b *testing.B) {
		raw := typicalPod(b)
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if !json.Valid(raw) {
				b.Fatal("no JSON")
			}
		}
	})
}

func BenchmarkReadMetadata(b *testing.B) {
	raw := typicalPod(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadMetadata(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// copyWithoutManagedFields is the simplest part of redaction, done with the JSON library
// that the server uses: decision 64 compares them.
func copyWithoutManagedFields(to *jsontext.Encoder, from *jsontext.Decoder) error {
	for {
		token, err := from.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind, n := from.StackIndex(from.StackDepth()); kind == '{' && n%2 == 1 && token.Kind() == '"' && token.String() == "managedFields" {
			if err := from.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if err := to.WriteToken(token); err != nil {
			return err
		}
	}
}
