package convergence

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// convergenceTimes collects how long worlds took to converge after all faults had ended. It is safe
// for concurrent use.
type convergenceTimes struct {
	mu        sync.Mutex
	durations []time.Duration
}

func (h *convergenceTimes) add(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.durations = append(h.durations, took)
}

// String returns the distribution.
func (h *convergenceTimes) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.durations) == 0 {
		return "nothing converged"
	}
	slices.Sort(h.durations)
	quantileAt := func(quantile float64) float64 {
		return h.durations[int(quantile*float64(len(h.durations)-1)+0.5)].Seconds()
	}
	return fmt.Sprintf("%d worlds converged: p50 %.1fs, p90 %.1fs, maximum %.1fs", len(h.durations), quantileAt(0.5), quantileAt(0.9), quantileAt(1))
}
