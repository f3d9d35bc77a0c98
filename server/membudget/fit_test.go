package membudget_test

import (
	"math"
	"testing"

	"github.com/vedette-io/vedette/server/membudget"
)

func TestBudgetFitsAvailableMemory(t *testing.T) {
	const most = 128 << 20
	for available, want := range map[int64]int64{
		0: most, -1: most, 1: most / 4, 512 << 20: most / 4, 768 << 20: most * 5 / 8, 1 << 30: most, math.MaxInt64: most,
	} {
		if got := membudget.Fit(most, available); got != want {
			t.Errorf("%d bytes: got %d, want %d", available, got, want)
		}
	}
}
