package metricset

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// scrape returns the answer to a scrape.
func scrape(t *testing.T, s *Set, path string) string {
	t.Helper()
	response := httptest.NewRecorder()
	s.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
	body, err := io.ReadAll(response.Body)
	if err != nil || response.Code != http.StatusOK {
		t.Fatalf("GET %s: got %d %s, error %v", path, response.Code, body, err)
	}
	return string(body)
}

// wantLines checks that a scrape has lines.
func wantLines(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+got, "\n"+line+"\n") {
			t.Errorf("got no line %q in\n%s", line, got)
		}
	}
}

func TestScrapeShowsCurrentSamples(t *testing.T) {
	s := New()
	s.Counter("requests_total", "Requests.", "code").WithLabelValues("200").Add(3)
	s.Counter("restarts_total", "Restarts.")
	s.Gauge("temperature", "Degrees.").WithLabelValues().Set(21.5)
	s.Histogram("duration_seconds", "Time.", []float64{1, 2}).WithLabelValues().Observe(1.5)
	queue, moved := s.SampledGauge("queue", "Entries.", "name"), s.SampledCounter("moved_total", "Moved.")
	depth := 0.0
	s.OnScrape(func() { depth++; queue.Set(depth, "a"); queue.Set(0, "b") })
	first := scrape(t, s, "/metrics")
	wantLines(t, first, "# TYPE requests_total counter", `requests_total{code="200"} 3`, "restarts_total 0", "temperature 21.5",
		`duration_seconds_bucket{le="2"} 1`, `queue{name="a"} 1`, `queue{name="b"} 0`, "# TYPE queue gauge")
	if strings.Contains(first, "moved_total") {
		t.Error("got a value of a metric that nothing samples")
	}
	s.OnScrape(func() { moved.Set(7) })
	wantLines(t, scrape(t, s, "/prometheus_metrics"), `queue{name="a"} 2`, "# TYPE moved_total counter", "moved_total 7")
}

// TestHostileLabelsForgeNoLine checks that labels with any bytes are scraped, each in one line.
func TestHostileLabelsForgeNoLine(t *testing.T) {
	s := New()
	queue := s.SampledGauge("queue", "Entries.", "name")
	s.OnScrape(func() {
		for _, name := range []string{"caf\xe9", "a\nqueue{name=\"forged\"} 7", "a/b", "\x1b[2J", strings.Repeat("x", 300)} {
			queue.Set(1, name)
		}
	})
	got := scrape(t, s, "/metrics")
	wantLines(t, got, "queue{name=\"caf\ufffd\"} 1", `queue{name="a\nqueue{name=\"forged\"} 7"} 1`, `queue{name="a/b"} 1`)
	if strings.Contains(got, "\nqueue{name=\"forged") {
		t.Errorf("a label forged a line in %s", got)
	}
}

// TestPredecessorsRuntimeMetrics checks for the runtime metrics that the predecessor documented.
func TestPredecessorsRuntimeMetrics(t *testing.T) {
	got := scrape(t, New(), "/metrics")
	for _, name := range strings.Fields(`go_gc_duration_seconds go_goroutines go_threads go_memstats_alloc_bytes
		go_memstats_buck_hash_sys_bytes go_memstats_gc_cpu_fraction go_memstats_gc_sys_bytes go_memstats_heap_alloc_bytes
		go_memstats_heap_idle_bytes go_memstats_heap_inuse_bytes go_memstats_heap_objects go_memstats_heap_released_bytes
		go_memstats_heap_sys_bytes go_memstats_last_gc_time_seconds go_memstats_next_gc_bytes go_memstats_sys_bytes
		go_memstats_alloc_bytes_total go_memstats_frees_total go_memstats_lookups_total go_memstats_mallocs_total
		go_memstats_stack_inuse_bytes process_max_fds process_open_fds process_resident_memory_bytes process_start_time_seconds
		process_virtual_memory_bytes process_virtual_memory_max_bytes process_cpu_seconds_total`) {
		if !strings.Contains(got, "# TYPE "+name+" ") {
			t.Errorf("got no %s", name)
		}
	}
}

func TestOnlyMetricsAreServed(t *testing.T) {
	h := New().Handler(slog.New(slog.DiscardHandler))
	for request, want := range map[string]int{"GET /": 404, "GET /debug/pprof/": 404, "POST /metrics": 405, "HEAD /metrics": 200} {
		method, path, _ := strings.Cut(request, " ")
		response := httptest.NewRecorder()
		h.ServeHTTP(response, httptest.NewRequest(method, path, nil))
		if response.Code != want {
			t.Errorf("%s: got %d, want %d", request, response.Code, want)
		}
	}
}

// TestScrapesDoNotShareSamples checks that scrapes do not see each other's samples.
func TestScrapesDoNotShareSamples(t *testing.T) {
	s := New()
	g := s.SampledGauge("g", "G.", "l")
	s.OnScrape(func() { g.Set(1, "a"); g.Set(2, "b") })
	var all sync.WaitGroup
	for range 4 { // the handler accepts no more at a time
		all.Go(func() {
			families, err := s.registry.Gather()
			if err != nil {
				t.Error(err)
			}
			for _, f := range families {
				if f.GetName() == "g" && len(f.GetMetric()) != 2 {
					t.Errorf("got %d series, want 2", len(f.GetMetric()))
				}
			}
		})
	}
	all.Wait()
}

func TestLabelValuesAreBounded(t *testing.T) {
	for code, want := range map[int]string{0: "none", 200: "200", 418: "418", 599: "other", 999: "other", -1: "other"} {
		if got := StatusCode(code); got != want {
			t.Errorf("status %d: got %s, want %s", code, got, want)
		}
	}
}

func TestMarkdownListsMetricsByName(t *testing.T) {
	s := New()
	s.Gauge("b", "After | a.")
	s.Counter("a_total", "First.", "x", "y")
	want := "| metric | type | labels | meaning |\n|---|---|---|---|\n| `a_total` | counter | `x`, `y` | First. |\n| `b` | gauge |  | After \\| a. |\n"
	if got := s.Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
