package request

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDecodedSizeIsEstimatedClosely compares the estimate with what decoding really takes.
func TestDecodedSizeIsEstimatedClosely(t *testing.T) {
	for name, raw := range map[string]string{
		"empty maps":  `[` + strings.Repeat(`{"":0},`, 20_000) + `0]`,
		"empty lists": `[` + strings.Repeat(`[0],`, 20_000) + `0]`,
		"numbers":     `[` + strings.Repeat(`7,`, 20_000) + `0]`,
		"texts":       `["` + strings.Repeat(`{},`, 20_000) + `"]`,
		"deep lists":  strings.Repeat(`[`, 5_000) + strings.Repeat(`]`, 5_000),
	} {
		allocated := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var v any
				if err := json.Unmarshal([]byte(raw), &v); err != nil {
					b.Fatal(err)
				}
			}
		}).AllocedBytesPerOp()
		if estimate := DecodedSize([]byte(raw), DecodedAsTree); allocated > 3*estimate || name == "texts" && estimate > int64(2*len(raw)) {
			t.Errorf("%s: got an estimate of %d bytes for %d bytes of JSON, which takes %d with all copies", name, estimate, len(raw), allocated)
		}
	}
}
