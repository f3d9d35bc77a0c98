package upstream

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// BenchmarkMerge merges large answers of both sides.
func BenchmarkMerge(b *testing.B) {
	list := func(n int, account string) []byte {
		entry := `{"name":"replicaSet web-v%03d","account":"` + account + `","region":"shop","labels":{"app":"web"},"instances":[` +
			strings.Repeat(`{"id":"6f0e","name":"pod web","healthState":"Up"},`, 4) + `{}]}`
		return repeated(n, entry)
	}
	applications := func(n int, account string) []byte {
		return repeated(n, `{"name":"app-%d","attributes":{"name":"app"},"clusterNames":{"`+account+`":["deployment web","deployment api"]}}`)
	}
	for _, bb := range []struct {
		name, pattern string
		local, theirs []byte
	}{
		{"1000 and 1000 server groups", "applications/{app}/serverGroups", list(1000, ourAccount), list(1000, theirAccount)},
		{"1000 and 1000 load balancers", "applications/{app}/loadBalancers", list(1000, ourAccount), list(1000, theirAccount)},
		{"20000 and 5000 applications", "applications", applications(20_000, ourAccount), applications(5000, theirAccount)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.local) + len(bb.theirs)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := join(b, endpoint(b, bb.pattern), bb.local, bb.theirs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeated returns a JSON list of n entries with numbers.
func repeated(n int, entry string) []byte {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(entry, i))
	}
	return []byte("[" + strings.Join(parts, ",") + "]")
}

// BenchmarkRoute decides about a request of Orca.
func BenchmarkRoute(b *testing.B) {
	table := Table()
	b.ReportAllocs()
	for b.Loop() {
		if findRoute(table, "GET", "/manifests/prod/shop/deployment%20web").Mode != ByAccount {
			b.Fatal("got another mode")
		}
	}
}

// BenchmarkMergedLists reads lists of 10 MB of each side, several at once, and compares that with lists of the upstream Clouddriver
// alone. It answers at once, as no real one does, so what remains is the processor time of merging.
func BenchmarkMergedLists(b *testing.B) {
	local, theirs := serverGroupsOf(20_000, ourAccount), serverGroupsOf(20_000, theirAccount)
	w := newWorld(b, nil)
	w.local.answer = func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(local) }
	w.theirs.answer = func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(theirs) }
	read := func(url string) {
		response, err := http.Get(url)
		if err != nil {
			b.Error(err)
			return
		}
		defer response.Body.Close()
		if n, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK || n < int64(len(theirs)) {
			b.Errorf("got %d with %d bytes, %v", response.StatusCode, n, err)
		}
	}
	for _, atOnce := range []int{1, 8, 32} {
		for name, url := range map[string]string{"alone": w.handler.client.BaseURL, "merged": w.url} {
			b.Run(fmt.Sprintf("%s/%d", name, atOnce), func(b *testing.B) {
				b.SetBytes(int64(atOnce * len(theirs)))
				for b.Loop() {
					var group sync.WaitGroup
					for range atOnce {
						group.Go(func() { read(url + "/applications/web/serverGroups") })
					}
					group.Wait()
				}
			})
		}
	}
}

// serverGroupsOf returns a list of n server groups of about 500 bytes each.
func serverGroupsOf(n int, account string) []byte {
	return repeated(n, `{"name":"replicaSet web-v%06d","account":"`+account+`","region":"shop","labels":{"app":"web"},"instances":[`+
		strings.Repeat(`{"id":"6f0e9c1a-3b2d","name":"pod web-7d9f8","healthState":"Up"},`, 5)+`{}]}`)
}
