package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/ports"
)

// Server is a running Prometheus.
type Server struct {
	t   *testing.T
	url string
}

// Target is a port that Prometheus scrapes, with the labels that service discovery adds in a
// cluster.
type Target struct{ Job, Address, Path, Namespace, Pod string }

// Start starts a Prometheus that scrapes targets every second, and stops it when the test ends.
func Start(t *testing.T, b Binaries, targets ...Target) *Server {
	t.Helper()
	port, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(configOf(targets)), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprint("127.0.0.1:", port)
	cmd := exec.CommandContext(t.Context(), b.Prometheus, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended, which stops it
	return &Server{t, "http://" + address}
}

func configOf(targets []Target) string {
	var b strings.Builder
	b.WriteString("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n")
	for _, target := range targets {
		fmt.Fprintf(&b, "  - job_name: %s\n    metrics_path: %s\n    static_configs:\n      - targets: [%q]\n        labels: {namespace: %s, pod: %s}\n",
			target.Job, target.Path, target.Address, target.Namespace, target.Pod)
	}
	return b.String()
}

// response is the answer to an instant query.
type response struct {
	Status string
	Error  string
	Data   struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any // time and value
		}
	}
}

// Query returns the values of an instant query that are numbers, by their labels.
func (s *Server) Query(ctx context.Context, query string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer response
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", resp.Status, err, body)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%w: %s", errQuery, answer.Error)
	}
	values := map[string]float64{}
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err == nil && !math.IsNaN(value) {
			values[fmt.Sprint(r.Metric)] = value
		}
	}
	return values, nil
}
