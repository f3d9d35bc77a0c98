package clouddriver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// BenchmarkViews measures views of an application with 1,000 ReplicaSets of 250 Deployments, 5,000
// Pods and 100 Services, after a change of it and without one, and of one with 20 Pods.
func BenchmarkViews(b *testing.B) {
	w := readtest.New(b)
	w.Account("prod", viewKinds()...)
	putApplication(w, "big", 1000, 5)
	putApplication(w, "small", 4, 5)
	handler := clouddriver.New(clouddriver.Config{Store: w.Store})
	for _, bench := range []struct{ name, path, change string }{
		{"big/changed/serverGroups", "/applications/big/serverGroups", "big"},
		{"big/changed/expanded", "/applications/big/serverGroups?expand=true", "big"},
		{"big/changed/managers", "/applications/big/serverGroupManagers", "big"},
		{"big/changed/loadBalancers", "/applications/big/loadBalancers", "big"},
		{"big/changed/rawResources", "/applications/big/rawResources", "big"},
		{"big/unchanged/loadBalancers", "/applications/big/loadBalancers", ""},
		{"search/many", "/search?q=big&type=applications,clusters,serverGroups,instances,loadBalancers,securityGroups&pageSize=500", ""},
		{"big/unchanged/serverGroups", "/applications/big/serverGroups", ""},
		{"big/unchanged/clusters", "/applications/big/clusters", ""},
		{"small/changed/serverGroups", "/applications/small/serverGroups", "small"},
		{"small/detail", "/serverGroups/prod/small/replicaSet%20small-0", ""},
	} {
		b.Run(bench.name, func(b *testing.B) {
			version := 0
			var cpu cpuMeter
			for b.Loop() {
				if bench.change != "" {
					b.StopTimer()
					version++
					w.Put("prod", workload(bench.change, 0, fmt.Sprint(version)))
					b.StartTimer()
				}
				cpu.start()
				recorder := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, bench.path, nil)
				r.Header.Set("Accept-Encoding", "gzip")
				handler.ServeHTTP(recorder, r)
				if n, _ := io.Copy(io.Discard, recorder.Body); recorder.Code != http.StatusOK || n < 100 {
					b.Fatalf("got %d and %d bytes, want 200", recorder.Code, n)
				}
				cpu.stop()
			}
			cpu.report(b)
		})
	}
}

// BenchmarkApplications measures the list of 20,000 applications: unchanged, after one was added,
// and for a caller who may read half of them.
func BenchmarkApplications(b *testing.B) {
	w := readtest.New(b)
	w.Account("prod", viewKinds()...)
	add := func(from, to int) {
		var manifests []string
		for i := from; i < to; i++ {
			manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"app%d","namespace":"n"}}`, i))
		}
		w.Put("prod", manifests...)
	}
	const applications = 20_000
	add(0, applications)
	next := applications
	for name, bench := range map[string]struct {
		authorizer clouddriver.Config
		change     bool
	}{
		"unchanged": {}, "changed": {change: true}, "restricted": {authorizer: clouddriver.Config{Authorizer: halfReadable{}}},
	} {
		cfg := bench.authorizer
		cfg.Store = w.Store
		handler := clouddriver.New(cfg)
		b.Run(name, func(b *testing.B) {
			var cpu cpuMeter
			for b.Loop() {
				if bench.change {
					b.StopTimer()
					add(next, next+1)
					next++
					b.StartTimer()
				}
				cpu.start()
				recorder := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/applications", nil)
				r.Header.Set("Accept-Encoding", "gzip")
				handler.ServeHTTP(recorder, r)
				if recorder.Code != http.StatusOK || recorder.Body.Len() < 1000 {
					b.Fatalf("got %d and %d bytes, want 200", recorder.Code, recorder.Body.Len())
				}
				cpu.stop()
			}
			cpu.report(b)
		})
	}
}

// halfReadable lets callers read applications whose name ends in an even digit.
type halfReadable struct{ grants }

func (halfReadable) ReadableApplications(context.Context, authorize.Caller) (func(string) bool, error) {
	return func(name string) bool { return (name[len(name)-1]-'0')%2 == 0 }, nil
}

// putApplication stores workloads with pods of each, in a namespace of the application's name.
func putApplication(w *readtest.Fixture, name string, workloads, pods int) {
	var manifests []string
	for i := range workloads {
		manifests = append(manifests, workload(name, i, "1"))
		if i%4 == 0 {
			manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"%[1]s-%[2]d","namespace":"%[1]s","uid":"d0000000-0000-4000-8000-%012[2]d"},
				"spec":{"replicas":5,"template":{"spec":{"containers":[{"name":"web","image":"registry.io/%[1]s:1"}]}}}}`, name, i/4))
		}
		if i%10 == 0 {
			manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"%[1]s-%[2]d","namespace":"%[1]s"},"spec":{"selector":{"app":"%[1]s","part":"%[2]d"}}}`, name, i))
		}
		for j := range pods {
			manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%[1]s-%[2]d-%[3]d","namespace":"%[1]s","creationTimestamp":"2026-11-20T11:00:00Z",
				"labels":{"app":"%[1]s","part":"%[2]d","pod-template-hash":"6c9f4"},"annotations":{"moniker.spinnaker.io/application":"%[1]s","moniker.spinnaker.io/cluster":"deployment %[1]s-%[4]d"},
				"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"%[1]s-%[2]d","uid":"%[5]s","controller":true}]},
				"status":{"phase":"Running","containerStatuses":[{"name":"web","ready":true},{"name":"proxy","ready":true}]}}`, name, i, j, i/4, workloadUID(name, i)))
		}
	}
	w.Put("prod", manifests...)
}

func workloadUID(name string, i int) string {
	return fmt.Sprintf("a0000000-0000-4000-%04x-%012d", len(name), i)
}

func workload(name string, i int, version string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"%[1]s-%[2]d","namespace":"%[1]s","uid":"%[3]s","creationTimestamp":"2026-11-20T11:00:00Z",
		"labels":{"app":"%[1]s","version":%[4]q},"annotations":{"moniker.spinnaker.io/application":"%[1]s","moniker.spinnaker.io/cluster":"deployment %[1]s-%[5]d"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"%[1]s-%[5]d","uid":"d0000000-0000-4000-8000-%012[5]d","controller":true}]},
		"spec":{"replicas":5,"template":{"metadata":{"labels":{"app":"%[1]s","part":"%[2]d"}},"spec":{"containers":[{"name":"web","image":"registry.io/%[1]s:%[4]s"},{"name":"proxy","image":"registry.io/proxy:1"}]}}}}`,
		name, i, workloadUID(name, i), version, i/4)
}
