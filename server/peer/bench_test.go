package peer

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// BenchmarkForwarding measures operations of an agent that answers at once: at its own server and at another one, side by side, alone and
// many at a time. What the other server adds is the difference.
func BenchmarkForwarding(b *testing.B) {
	for _, parallel := range []int{1, 50} {
		for _, at := range []vedette.ServerID{"s2", "s1"} {
			place := map[vedette.ServerID]string{"s1": "forwarded", "s2": "local"}[at]
			b.Run(fmt.Sprintf("%s/parallel=%d", place, parallel), func(b *testing.B) {
				w := newInstallation(b, "s1", "s2")
				w.newAgent("a", "1", "prod").connect(w.nodes["s2"])
				expectDone(b, w.nodes[at].Execute(b.Context(), vedette.Operation{Account: "prod", Args: get}))
				measure(b, w.nodes[at], parallel)
			})
		}
	}
}

func measure(b *testing.B, n *node, parallel int) {
	times := make([]time.Duration, b.N)
	var running sync.WaitGroup
	b.ResetTimer()
	for worker := range parallel {
		running.Go(func() {
			for i := worker; i < b.N; i += parallel {
				start := time.Now()
				if out := n.Execute(b.Context(), vedette.Operation{Account: "prod", Args: scale}); out.State != vedette.Done {
					b.Errorf("got %+v", out)
					return
				}
				times[i] = time.Since(start)
			}
		})
	}
	running.Wait()
	b.StopTimer()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}
