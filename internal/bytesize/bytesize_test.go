package bytesize

import (
	"math"
	"testing"
)

func TestSizesAreShownInWholeUnits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 100: "100 bytes", 1024: "1 KiB", 1536: "1536 bytes", 10 << 10: "10 KiB", 512 << 10: "512 KiB", 512<<10 + 1: "512 KiB",
		1 << 20: "1 MiB", 3 << 19: "1536 KiB", 16 << 20: "16 MiB", 16<<20 + 1<<19: "16 MiB", 1 << 30: "1 GiB", 3 << 29: "1536 MiB", 64 << 30: "64 GiB",
		-1: "-1 bytes", math.MaxInt64: "8589934591 GiB",
	} {
		if got := Text(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
