package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
)

// BenchmarkObjects lists 5,000 Pods of ten accounts, without a network.
func BenchmarkObjects(b *testing.B) {
	world := readtest.New(b)
	for a := range 10 {
		account := vedette.AccountName(fmt.Sprintf("prod-%d", a))
		world.Account(account, "pods", "deployments", "replicasets", "services", "nodes", "namespaces")
		var pods []string
		for i := range 500 {
			pods = append(pods, readtest.Pod("shop", fmt.Sprintf("web-6c9f4-%05d", i), fmt.Sprintf("web%d", i%20)))
		}
		world.Put(account, pods...)
	}
	handler := api.New(configOf(world))
	for name, path := range map[string]string{"5000": "kind=pods&limit=5000", "5000 as table": "kind=pods&limit=5000&as=table", "500": "kind=pods",
		"500 with bodies": "kind=pods&include=body", "application": "kind=pods&application=web3&limit=5000"} {
		b.Run(name, func(b *testing.B) {
			var latencies []time.Duration
			size := 0
			for b.Loop() {
				start := time.Now()
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/vedette/v1/objects?"+path, nil))
				latencies = append(latencies, time.Since(start))
				size = w.Body.Len()
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
			slices.Sort(latencies)
			b.ReportMetric(float64(latencies[len(latencies)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(size)/1024, "KiB")
		})
	}
}
