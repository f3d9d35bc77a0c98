package clouddriver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// BenchmarkCredentials lists 5,000 accounts with ten namespaces each, between two lists of which
// so many accounts change.
func BenchmarkCredentials(b *testing.B) {
	w := readtest.New(b)
	kinds := []any{"pods", "deployments", "replicasets", "daemonsets", "statefulsets", "jobs", "cronjobs", "services", "ingresses", "networkpolicies", "namespaces"}
	account := func(i int) vedette.AccountName { return vedette.AccountName(fmt.Sprintf("account-%04d", i)) }
	for i := range 5000 {
		w.Account(account(i), kinds...)
		var manifests []string
		for j := range 10 {
			manifests = append(manifests, namespace(fmt.Sprint("team-", j)))
		}
		w.Put(account(i), manifests...)
	}
	for _, changed := range []int{0, 1, 100, 5000} {
		for _, path := range []string{"/credentials", "/credentials?expand=true"} {
			b.Run(fmt.Sprintf("changed=%d,path=%s", changed, path), func(b *testing.B) {
				handler := clouddriver.New(clouddriver.Config{Store: w.Store})
				do := func() {
					recorder := httptest.NewRecorder()
					handler.ServeHTTP(recorder, httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil))
					if recorder.Code != http.StatusOK {
						b.Fatal(recorder.Code, recorder.Body)
					}
				}
				do()
				var cpu cpuMeter
				for n := 0; b.Loop(); n++ {
					b.StopTimer()
					for i := range min(changed, 200) {
						w.Put(account(i), namespace(fmt.Sprint("new-", n)))
					}
					if changed > 200 { // as after a restart
						handler = clouddriver.New(clouddriver.Config{Store: w.Store})
					}
					b.StartTimer()
					cpu.start()
					do()
					cpu.stop()
				}
				cpu.report(b)
			})
		}
	}
}
