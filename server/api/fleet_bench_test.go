package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/bench/dataset"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/readtest"
)

// BenchmarkFleet asks small questions of fleets of different sizes. Neither their time nor their
// bytes should depend on the number of accounts.
func BenchmarkFleet(b *testing.B) {
	for _, accounts := range []int{500, 5000} {
		world := readtest.New(b)
		if err := dataset.Fill(b.Context(), world.Store, dataset.Dataset{Accounts: accounts, Objects: 10 * accounts, OtherApplications: accounts}); err != nil {
			b.Fatal(err)
		}
		for i := range accounts {
			world.Fleet.Connect(dataset.AccountName(i))
		}
		cfg := configOf(world)
		cfg.StaleAfter = time.Hour
		handler := api.New(cfg)
		restricted := configOf(world)
		restricted.Authorizer = readsMost{}
		b.Run(fmt.Sprintf("accounts=%d/objects?limit=1 of a user who may not read all accounts", accounts), func(b *testing.B) {
			benchmarkPath(b, api.New(restricted), "/vedette/v1/objects?limit=1")
		})
		for _, path := range []string{"objects?limit=1", "objects?limit=1&kind=pods", "objects?limit=1&account=prod-00007", "accounts/prod-00007",
			"feeds?account=prod-00007", "accounts?limit=10", "feeds?limit=10", "kinds"} {
			b.Run(fmt.Sprintf("accounts=%d/%s", accounts, path), func(b *testing.B) { benchmarkPath(b, handler, "/vedette/v1/"+path) })
		}
	}
}

// readsMost lets everyone read all accounts but one.
type readsMost struct{}

func (readsMost) CheckAccount(context.Context, authorize.Caller, vedette.AccountName, authorize.Access) error {
	return nil
}

func (readsMost) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return func(account vedette.AccountName) bool { return account != "prod-00000" }, nil
}

func benchmarkPath(b *testing.B, handler http.Handler, path string) {
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)) // reads all accounts
	b.ReportAllocs()
	var latencies []time.Duration
	size := 0
	for b.Loop() {
		start := time.Now()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		latencies = append(latencies, time.Since(start))
		size = w.Body.Len()
		if w.Code != http.StatusOK {
			b.Skipf("%s: %s", path, w.Body)
		}
	}
	slices.Sort(latencies)
	b.ReportMetric(float64(latencies[len(latencies)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(size)/1024, "KiB")
}
