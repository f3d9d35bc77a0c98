package applications

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"testing"
)

// TestJoinedPartsAreOneGzipFile puts files together from parts, and reads them with the standard library, as one
// file and not as several.
func TestJoinedPartsAreOneGzipFile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 200<<10)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	text := bytes.Repeat([]byte(`{"name":"web","attributes":{"name":"web"}},`), 5000)
	for name, parts := range map[string][][]byte{
		"none": nil, "an empty one": {{}}, "one": {text}, "several that repeat each other": {text, text[:100], {}, text}, "incompressible": {noise, noise},
	} {
		var body []byte
		var compressed [][]byte
		for _, part := range parts {
			c, err := deflate(part)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			body, compressed = append(body, part...), append(compressed, c)
		}
		file := joinGzip(body, compressed...)
		reader, err := gzip.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		reader.Multistream(false)
		got, err := io.ReadAll(reader)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: got %d bytes and error %v, want the %d of the body", name, len(got), err, len(body))
		}
		if len(body) == 2*len(text)+100 && len(file) > len(body)/20 {
			t.Errorf("%s: got %d bytes for %d, want them compressed", name, len(file), len(body))
		}
	}
}
