package convergence

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// healing collects how long worlds took to converge once all was healed. It is safe
// for concurrent use.
type healing struct {
	mu   sync.Mutex
	took []time.Duration
}

func (h *healing) add(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.took = append(h.took, took)
}

// String tells the distribution.
func (h *healing) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.took) == 0 {
		return "nothing converged"
	}
	slices.Sort(h.took)
	at := func(quantile float64) float64 {
		return h.took[int(quantile*float64(len(h.took)-1)+0.5)].Seconds()
	}
	return fmt.Sprintf("%d worlds converged: half of them within %.1fs, nine of ten within %.1fs, the last after %.1fs", len(h.took), at(0.5), at(0.9), at(1))
}
