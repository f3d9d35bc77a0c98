package upstream

import (
	"fmt"
	"strings"
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
		own, theirs   []byte
	}{
		{"1000 and 1000 server groups", "applications/{app}/serverGroups", list(1000, ourAccount), list(1000, theirAccount)},
		{"1000 and 1000 load balancers", "applications/{app}/loadBalancers", list(1000, ourAccount), list(1000, theirAccount)},
		{"20000 and 5000 applications", "applications", applications(20_000, ourAccount), applications(5000, theirAccount)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.own) + len(bb.theirs)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := join(b, endpoint(b, bb.pattern), bb.own, bb.theirs); err != nil {
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
