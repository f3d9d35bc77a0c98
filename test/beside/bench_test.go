package beside

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkMergedLists reads lists of 1,000 server groups of each of two accounts, several at once, from a Clouddriver that has both
// accounts, and from a server before it, which has one of them from an agent. It reports how long all take there and here, the ratio
// of both, and the most memory that the server has used.
func BenchmarkMergedLists(b *testing.B) {
	if *clouddriverArguments == "" {
		b.Skip("it needs a real Clouddriver: make verify-beside")
	}
	clusters := startClusters(b, east, west)
	c := startClouddriver(b, clusters)
	in := newInstallation(b, settings{upstream: c.URL(), grace: time.Hour, timeouts: fmt.Sprintf(", mergeTimeout: %s, timeout: %[1]s", listTimeout)})
	in.newAgent(west, clusters[west].Kubeconfig()).Start()
	await(b, 2*time.Minute, "west is synchronized", func(ctx context.Context) error { return in.checkSynchronized(ctx, west) })
	await(b, time.Minute, "west is answered by agents", func(ctx context.Context) error { return in.checkOwner(ctx, west, agents) })
	path := "/applications/" + filler + "/serverGroups?expand=true"
	readMany(b, c.URL()+path, 1) // what it compiles first is not what is measured
	for _, atOnce := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("%d at once", atOnce), func(b *testing.B) {
			var alone, merged []time.Duration
			before, err := in.server.Process().Usage()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				alone = append(alone, readMany(b, c.URL()+path, atOnce))
				merged = append(merged, readMany(b, in.url+path, atOnce))
			}
			after, err := in.server.Process().Usage()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(median(alone).Seconds()*1000, "clouddriver-ms")
			b.ReportMetric(median(merged).Seconds()*1000, "merged-ms")
			b.ReportMetric(float64(median(merged))/float64(median(alone)), "ratio")
			b.ReportMetric((after.CPU-before.CPU).Seconds()*1000/float64(b.N*atOnce), "server-CPU-ms/list")
			b.ReportMetric(float64(after.Peak>>20), "server-MiB")
		})
	}
}

// listTimeout is longer than Spinnaker's services wait, because Clouddriver alone needs longer for 32 lists.
const listTimeout = 5 * time.Minute

// readMany reads a list several times at once, and returns how long it took until all answers had arrived. Each must be complete.
func readMany(b *testing.B, url string, times int) time.Duration {
	b.Helper()
	began := time.Now()
	var reading sync.WaitGroup
	for range times {
		reading.Go(func() {
			a := sendWithin(b.Context(), listTimeout, http.MethodGet, url, nil)
			if n := strings.Count(string(a.body), `"createdTime"`); a.status != http.StatusOK || n < 2*fillerCount {
				b.Errorf("GET %s: got %v with %d server groups, want %d", url, a, n, 2*fillerCount)
			}
		})
	}
	reading.Wait()
	return time.Since(began)
}

func median(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}
