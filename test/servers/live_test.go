package servers

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/databases"
)

// TestLiveEventsBeginAtAnyServer reads live events at each server, and changes an object as soon as they have begun: servers are not told
// what others change while nobody reads it.
func TestLiveEventsBeginAtAnyServer(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	servers := []*oneServer{in.startServer("s0"), in.startServer("s1"), in.startServer("s2")}
	in.startAgent("a1", servers[0], "one", "ConfigMap")
	for _, s := range servers {
		s.awaitLive("one", 1)
	}
	for round := range 12 {
		ctx, cancel := context.WithCancel(t.Context())
		at := servers[round%len(servers)]
		events := at.follow(ctx, "one", "ConfigMap", "begin")
		if out := servers[round%2].operate("one", configMap("begin", fmt.Sprint(round))); out.State != "done" {
			t.Fatalf("round %d: got %+v", round, out)
		}
		select {
		case <-events:
		case <-time.After(20 * time.Second):
			t.Errorf("round %d: server %d does not tell that the object has changed", round, round%len(servers))
		}
		cancel()
	}
}

// BenchmarkLiveEvents measures the time from a request to a cluster until its change arrives in live events: at the server to which the
// agent is connected, and at another one.
func BenchmarkLiveEvents(b *testing.B) {
	for _, database := range []struct {
		name string
		url  func(testing.TB) string
	}{{"PostgreSQL", databases.PostgreSQL}, {"MariaDB", databases.MariaDB}} {
		b.Run(database.name, func(b *testing.B) { benchmarkLiveEvents(b, database.url(b)) })
	}
}

func benchmarkLiveEvents(b *testing.B, url string) {
	in := newInstallation(b, url)
	servers := []*oneServer{in.startServer("s0"), in.startServer("s1"), in.startServer("s2")}
	in.startAgent("a1", servers[0], "one", "ConfigMap")
	events := make([]<-chan time.Time, len(servers))
	for i, s := range servers {
		s.awaitLive("one", 1)
		events[i] = s.follow(b.Context(), "one", "ConfigMap", "live")
	}
	const path = "/api/v1/namespaces/default/configmaps"
	change := func(value string) time.Time {
		began := time.Now()
		if err := plane.Apply(b.Context(), path+"/live", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "live"},
			"data": object{"value": value}}); err != nil {
			b.Fatal(err)
		}
		return began
	}
	took := make([][]time.Duration, len(servers))
	for n := 0; b.Loop(); n++ {
		began := change(fmt.Sprint(b.Name(), n))
		for i := range servers {
			select {
			case at := <-events[i]:
				took[i] = append(took[i], at.Sub(began))
			case <-time.After(time.Minute):
				b.Fatalf("change %d has not arrived at server %d within a minute", n, i)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range []string{"own", "other", "third"} {
		slices.Sort(took[i])
		for _, percentile := range []int{50, 99} {
			b.ReportMetric(float64(took[i][(len(took[i])-1)*percentile/100].Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, percentile))
		}
	}
}

// follow returns the times at which changes of an object arrive, until ctx ends.
func (s *oneServer) follow(ctx context.Context, account vedette.AccountName, kind, name string) <-chan time.Time {
	s.in.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s/vedette/v1/changes?account=%s&kind=%s&namespace=default&name=%s", s.REST(), account, kind, name), http.NoBody)
	if err != nil {
		s.in.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.in.t.Fatal(err)
	}
	s.in.t.Cleanup(func() { _ = response.Body.Close() })
	events, ready := make(chan time.Time, 100), make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			switch name, isEvent := strings.CutPrefix(lines.Text(), "event: "); {
			case isEvent && name == "ready":
				close(ready)
			case isEvent && (name == "added" || name == "modified" || name == "deleted"):
				events <- time.Now()
			}
		}
	}()
	<-ready
	return events
}
