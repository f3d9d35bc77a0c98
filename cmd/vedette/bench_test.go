package main

import (
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
)

// BenchmarkGetPods prints 5,000 pods of ten clusters, read over HTTP from the store.
func BenchmarkGetPods(b *testing.B) {
	w := readtest.New(b)
	for a := range 10 {
		account := vedette.AccountName(fmt.Sprintf("prod-%d", a))
		w.Account(account, "pods", "nodes")
		var pods []string
		for i := range 500 {
			pods = append(pods, readtest.Pod("shop", fmt.Sprintf("web-6c9f4-%05d", i), "web"))
		}
		w.Put(account, pods...)
	}
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet}))
	defer server.Close()
	for _, chunk := range []string{"500", "5000"} {
		b.Run("chunks of "+chunk, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				root := newRoot()
				root.SetArgs([]string{"get", "pods", "--server", server.URL, "--chunk-size", chunk})
				root.SetOut(io.Discard)
				if err := execute(b.Context(), root); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
