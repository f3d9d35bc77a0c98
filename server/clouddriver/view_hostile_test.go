package clouddriver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// hostileObjects belong to the application "evil" in a namespace that "shop" uses, too.
func hostileObjects() map[string][]string {
	metadata := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"namespace":"shop","uid":"evil-%s","annotations":{"moniker.spinnaker.io/application":"evil"%s}}`, name, name, more)
	}
	quoted := func(text string) string {
		b, _ := json.Marshal(text)
		return string(b)
	}
	big := strings.Repeat("x", 1<<20)
	many := func(n int, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, ",")
	}
	service := func(name, spec string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":` + metadata(name, "") + `,"spec":` + spec + `}`
	}
	replicaSet := func(name, annotations, spec string) string {
		return `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":` + metadata(name, annotations) + `,"spec":` + spec + `}`
	}
	return map[string][]string{
		"a selector of 1 MB":                  {service("big", `{"selector":{"app":`+quoted(big)+`}}`)},
		"a selector of 50,000 labels":         {service("wide", `{"selector":{`+many(50_000, `"l%d":"x"`)+`}}`)},
		"a selector of numbers":               {service("odd", `{"selector":{"app":1,"b":null,"c":{"d":[]}}}`)},
		"a template with 50,000 labels":       {replicaSet("wide", "", `{"template":{"metadata":{"labels":{`+many(50_000, `"l%d":"x"`)+`}}}}`)},
		"load balancers of 1 MB":              {replicaSet("lb", `,"traffic.spinnaker.io/load-balancers":`+quoted("["+many(50_000, `"service s%d"`)+"]"), `{}`)},
		"load balancers that are not JSON":    {replicaSet("bad", `,"traffic.spinnaker.io/load-balancers":`+quoted("["+big), `{}`)},
		"load balancers that are objects":     {replicaSet("obj", `,"traffic.spinnaker.io/load-balancers":"[{\"a\":1},null,3]"`, `{}`)},
		"a cluster of the inventory's own":    {replicaSet("one", `,"moniker.spinnaker.io/cluster":"\u0001"`, `{}`)},
		"a cluster with NUL and line ends":    {replicaSet("nul", `,"moniker.spinnaker.io/cluster":"a\u0000b\r\nX-Evil: 1"`, `{}`)},
		"a cluster of 1 MB":                   {replicaSet("cluster", `,"moniker.spinnaker.io/cluster":`+quoted(big), `{}`)},
		"an application of 1 MB":              {`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"a","namespace":"shop","uid":"a","annotations":{"moniker.spinnaker.io/application":` + quoted(big) + `}}}`},
		"a label that is not UTF-8":           {`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"u","namespace":"shop","uid":"u","labels":{"app":"\ud800"},"annotations":{"moniker.spinnaker.io/application":"evil"}}}`},
		"50,000 containers":                   {replicaSet("pods", "", `{}`), `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop","uid":"evil-pod","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"pods","uid":"evil-pods"}]},"status":{"phase":"Running","containerStatuses":[` + many(50_000, `{"name":"c%d","ready":true}`) + `]}}`},
		"10,000 backends":                     {`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":` + metadata("backends", "") + `,"spec":{"rules":[` + many(10_000, `{"http":{"paths":[{"backend":{"service":{"name":"s%d"}}}]}}`) + `]}}`},
		"replicas beyond all numbers":         {replicaSet("replicas", "", `{"replicas":99999999999999999999999}`), replicaSet("text", "", `{"replicas":"many","template":[]}`)},
		"owners in a circle":                  {`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"c1","namespace":"shop","uid":"c1","annotations":{"moniker.spinnaker.io/application":"evil"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"c2","uid":"c2"}]}}`, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"c2","namespace":"shop","uid":"c2","annotations":{"moniker.spinnaker.io/application":"evil"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"c1","uid":"c1"}]}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"self","namespace":"shop","uid":"self","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"self","uid":"self"}]}}`},
		"a Pod of a ReplicaSet of an account": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray","namespace":"other","uid":"stray","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"shop-web","uid":"shop-rs"}]}}`},
	}
}

// TestHostileObjectsHarmNobody stores objects that are large, broken or related to everything. All
// views must answer, and what is shown of another application in the same namespace stays the same.
func TestHostileObjectsHarmNobody(t *testing.T) {
	for name, manifests := range hostileObjects() {
		t.Run(name, func(t *testing.T) {
			w := readtest.New(t)
			w.Account("prod", viewKinds()...)
			w.Account("dev", viewKinds()...)
			w.Put("prod", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"shop-web","namespace":"shop","uid":"shop-rs","labels":{"app":"shop"}},"spec":{"template":{"metadata":{"labels":{"app":"shop"}}}}}`,
				`{"apiVersion":"v1","kind":"Service","metadata":{"name":"shop-web","namespace":"shop"},"spec":{"selector":{"app":"shop"}}}`)
			url := serve(t, clouddriver.Config{Store: w.Store})
			paths := []string{"/applications/shop/serverGroups?expand=true", "/applications/shop/loadBalancers", "/applications/shop/clusters", "/applications/shop",
				"/applications/shop/rawResources", "/serverGroups/prod/shop/replicaSet%20shop-web"}
			before := map[string][]byte{}
			for _, path := range paths {
				_, before[path] = get(t, url+path)
			}
			w.Put("prod", manifests...)
			w.Put("dev", manifests...)
			for _, path := range paths {
				if response, body := get(t, url+path); response.StatusCode != http.StatusOK || !bytes.Equal(body, before[path]) {
					t.Errorf("%s: got %d %.1000s, want as before %.1000s", path, response.StatusCode, body, before[path])
				}
			}
			for _, path := range []string{"/applications", "/applications/evil", "/applications/evil/clusters", "/applications/evil/clusters/prod", "/applications/evil/serverGroups",
				"/applications/evil/serverGroups?expand=true", "/applications/evil/serverGroupManagers", "/applications/evil/loadBalancers", "/applications/evil/rawResources",
				"/serverGroups?applications=evil", "/search?q=evil&type=applications,clusters,serverGroups,instances,loadBalancers", "/securityGroups"} {
				response, body := get(t, url+path)
				if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotFound || !json.Valid(body) {
					t.Errorf("%s: got %d %.300s, want 200 or 404 and JSON", path, response.StatusCode, body)
				}
			}
		})
	}
}

// TestClustersOfAnyName names clusters in all ways in which they could be mixed up with what counts
// them. Each must be listed where its server group is.
func TestClustersOfAnyName(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	names := []string{"\x01", "\x01\x01", " ", "a b", "deployment ", "x", "ünï", "a:b", "a/b", "%2F"}
	for i, name := range names {
		text, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Put("prod", fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"r%d","namespace":"shop",
			"annotations":{"moniker.spinnaker.io/application":"evil","moniker.spinnaker.io/cluster":%s}}}`, i, text))
	}
	w.Put("prod", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"shop","annotations":{"moniker.spinnaker.io/application":"evil"}}}`)
	url := serve(t, clouddriver.Config{Store: w.Store})
	var counted map[string][]string
	_, body := get(t, url+"/applications/evil/clusters")
	if err := json.Unmarshal(body, &counted); err != nil {
		t.Fatal(err)
	}
	var listed []struct{ Moniker struct{ Cluster string } }
	_, body = get(t, url+"/applications/evil/serverGroups")
	if err := json.Unmarshal(body, &listed); err != nil {
		t.Fatal(err)
	}
	var clusters []string
	for _, g := range listed {
		clusters = append(clusters, g.Moniker.Cluster)
	}
	slices.Sort(clusters)
	slices.Sort(counted["prod"])
	if !slices.Equal(clusters, counted["prod"]) || len(clusters) != len(names) {
		t.Errorf("got clusters %q, and server groups in %q, want the same %d", counted["prod"], clusters, len(names))
	}
}

// TestManyServicesOfManyServerGroups lets each of hundreds of Services send traffic to each of a
// hundred ReplicaSets. The answer about them is too large; everything else answers as always.
func TestManyServicesOfManyServerGroups(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	var manifests []string
	for i := range 400 {
		manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"evil-%d","namespace":"shop"},"spec":{"selector":{"app":"shop"}}}`, i))
	}
	for i := range 100 {
		manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"evil-r%d","namespace":"shop","uid":"rs-%d"},
			"spec":{"template":{"metadata":{"labels":{"app":"shop"}}}}}`, i, i))
		for j := range 20 {
			manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"evil-r%d-%d","namespace":"shop",
				"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"evil-r%d","uid":"rs-%d"}]},"status":{"phase":"Running"}}`, i, j, i, i))
		}
	}
	w.Put("prod", manifests...)
	w.Put("prod", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"shop-web","namespace":"shop"},"spec":{"template":{"metadata":{"labels":{"app":"shop"}}}}}`)
	url := serve(t, clouddriver.Config{Store: w.Store})
	response, body := get(t, url+"/applications/evil/loadBalancers")
	if response.StatusCode != http.StatusServiceUnavailable || !bytes.Contains(body, []byte("larger than 64 MiB")) {
		t.Errorf("got %d %.300s, want 503 with the reason", response.StatusCode, body)
	}
	for _, path := range []string{"/applications/evil/serverGroups", "/applications/shop/serverGroups", "/applications/shop/loadBalancers", "/applications"} {
		if response, body := get(t, url+path); response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %.300s, want 200", path, response.StatusCode, body)
		}
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if memory.HeapAlloc > 200<<20 {
		t.Errorf("%d MiB stay in memory", memory.HeapAlloc>>20)
	}
}

// TestLargeBatchesAreRefusedBeforeTheyAreEncoded names one application many times.
func TestLargeBatchesAreRefusedBeforeTheyAreEncoded(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	putApplication(w, "big", 60, 3)
	handler := clouddriver.New(clouddriver.Config{Store: w.Store})
	answerOf(handler, "/serverGroups?applications=big")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer := answerOf(handler, "/serverGroups?applications="+strings.Repeat("big,", 499)+"big")
	runtime.ReadMemStats(&after)
	if !strings.HasPrefix(answer, "400 ") {
		t.Errorf("got %.300s, want 400", answer)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 16 {
		t.Errorf("took %d MiB to refuse the request, want little", took)
	}
}
