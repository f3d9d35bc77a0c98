package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
			"feeds?account=prod-00007", "accounts?limit=10", "feeds?limit=10", "kinds", "served-kinds?name=pods"} {
			b.Run(fmt.Sprintf("accounts=%d/%s", accounts, path), func(b *testing.B) { benchmarkPath(b, handler, "/vedette/v1/"+path) })
		}
	}
}

// BenchmarkServedKinds resolves a name that clusters must be asked for, with their answers kept and without. Each cluster serves 300
// kinds, of which one is its own.
func BenchmarkServedKinds(b *testing.B) {
	const accounts = 500
	world := readtest.New(b)
	if err := dataset.Fill(b.Context(), world.Store, dataset.Dataset{Accounts: accounts, Objects: accounts}); err != nil {
		b.Fatal(err)
	}
	results := map[vedette.AccountName]json.RawMessage{}
	for i := range accounts {
		account := dataset.AccountName(i)
		world.Fleet.Connect(account)
		list := []string{fmt.Sprintf(`{"kind":"Own","group":"%s.example.com","version":"v1","plural":"owns"}`, account)}
		for n := range 299 {
			list = append(list, fmt.Sprintf(`{"kind":"Kind%d","group":"g%d.example.com","version":"v1","versions":["v1"],"plural":"kind%ds","singular":"kind%d",`+
				`"shortNames":["k%d"],"namespaced":true,"verbs":["create","delete","get","list","patch","update","watch"]}`, n, n%40, n, n, n))
		}
		results[account] = json.RawMessage(`{"kinds":[` + strings.Join(list, ",") + `]}`)
	}
	cfg := configOf(world)
	cfg.StaleAfter = time.Hour
	cfg.Dispatch = &fakeDispatcher{do: func(_ context.Context, op vedette.Operation) vedette.Outcome {
		return vedette.Outcome{State: vedette.Done, Status: 200, Result: results[op.Account]}
	}}
	b.Run("kept", func(b *testing.B) { benchmarkPath(b, api.New(cfg), "/vedette/v1/served-kinds?name=kind77s") })
	b.Run("asked", func(b *testing.B) {
		for b.Loop() {
			w := httptest.NewRecorder()
			api.New(cfg).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/vedette/v1/served-kinds?name=kind77s", nil))
			if w.Code != http.StatusOK {
				b.Fatal(w.Body)
			}
		}
	})
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
