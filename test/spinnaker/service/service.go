// Package service starts Spinnaker's own services for tests: Clouddriver, Gate and Orca, each from a
// Java argument file that holds "-cp CLASSPATH MAINCLASS", and their Redis.
//
// No entry of a class path may be empty, because Java takes it for the working directory.
// redis-server and Java 17 must be on the PATH.
package service

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"text/template"
	"time"

	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
)

//go:embed *.yml
var templates embed.FS

const (
	// startTimeout is how long a service may take until it is healthy. On two busy cores Orca takes 20
	// seconds.
	startTimeout = 5 * time.Minute
	pollInterval = 500 * time.Millisecond
)

// Config is the configuration of a service. What does not concern it stays empty.
type Config struct {
	Name        string    // clouddriver, gate or orca
	Arguments   string    // path of the Java argument file
	Dir         string    // for the configuration and the log
	Redis       int       // port
	Front50     string    // URL, also of Echo
	Clouddriver string    // URL
	Orca        string    // URL
	Accounts    []Account // of Clouddriver
	Kubectl     string    // path of the program
}

// Account is a Kubernetes account of a Clouddriver.
type Account struct {
	Name        string
	Environment string // as Clouddriver's own default if empty
	Kubeconfig  string // path
	Interval    int    // how often Clouddriver reads the cluster, in seconds; its own default if 0
}

// Service is a service that runs.
type Service struct {
	*process.Process
	url string
}

// Start starts a service, which may not be healthy yet.
func Start(cfg Config) (*Service, error) {
	arguments, err := filepath.Abs(cfg.Arguments)
	if err != nil {
		return nil, err
	}
	port, err := ports.Reserve()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	values := struct {
		Config
		Port int
	}{cfg, port}
	if err := template.Must(template.ParseFS(templates, "*.yml")).ExecuteTemplate(&text, cfg.Name+".yml", values); err != nil {
		return nil, err
	}
	file := filepath.Join(cfg.Dir, cfg.Name+".yml")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.util=ALL-UNNAMED",
		"--add-exports=java.base/sun.security.x509=ALL-UNNAMED", "-Dspring.config.location=file:"+file, "@"+arguments)
	cmd.Dir, cmd.Env = cfg.Dir, append(os.Environ(), "KUBECACHEDIR="+filepath.Join(cfg.Dir, "kubecache"))
	p, err := process.Start(cfg.Name, cmd)
	return &Service{p, fmt.Sprintf("http://127.0.0.1:%d", port)}, err
}

// StartRedis starts a Redis that keeps nothing, and returns its port.
func StartRedis(dir string) (*process.Process, int, error) {
	port, err := ports.Reserve()
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	cmd.Dir = dir
	p, err := process.Start("redis", cmd)
	return p, port, err
}

// URL returns the address of the service.
func (s *Service) URL() string { return s.url }

// AwaitHealth returns when the service is healthy.
func (s *Service) AwaitHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !isHealthy(ctx, s.url) {
		if err := s.Exited(); err != nil {
			return fmt.Errorf("%w\n%s", err, s.Tail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s is healthy: %w\n%s", s.url, ctx.Err(), s.Tail())
		case <-tick.C:
		}
	}
	return nil
}

func isHealthy(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
