package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/programs"
)

// measuredProcess is one of our programs, built as for users because its memory is measured.
type measuredProcess struct {
	*process.Process
	t          *testing.T
	management string // URL of its port for probes and metrics; may be empty
}

// server is a vedette-server.
type server struct {
	measuredProcess
	grpc string // address
	rest string // URL
}

const serverConfig = `
agents: {memoryBytes: 82MiB} # as by default with 512 MiB
server: {port: %d}
grpc: {server: {port: %d}}
sql: {url: "sqlite:%s"}
`

// build builds a server.
func build(t *testing.T, dir string) (binary string) {
	t.Helper()
	if err := programs.Build(t.Context(), dir, "vedette-server"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "vedette-server")
}

// startServer builds and starts a server, which is stopped when the test ends.
func startServer(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	binary := build(t, dir)
	rest, grpc := freePort(t), freePort(t)
	config := filepath.Join(dir, "server.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, serverConfig, rest, grpc, filepath.Join(dir, "v.db")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{measuredProcess: measuredProcess{t: t}, grpc: fmt.Sprintf("127.0.0.1:%d", grpc), rest: fmt.Sprintf("http://127.0.0.1:%d", rest)}
	s.start("server", dir, exec.Command(binary, "--config", config))
	await(t, "the server is ready", func() error {
		s.checkRunning()
		_, err := s.get("/vedette/v1/accounts")
		return err
	})
	return s
}

// checkRunning ends the test if the process has exited. Only the test's goroutine may call it.
func (p *measuredProcess) checkRunning() {
	p.t.Helper()
	if err := p.Exited(); err != nil {
		p.t.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	p, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start starts the program, and shows the end of its log if the test fails.
func (p *measuredProcess) start(name, dir string, cmd *exec.Cmd) {
	p.t.Helper()
	cmd.Dir = dir
	var err error
	if p.Process, err = process.Start(name, cmd); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		p.Kill()
		if p.t.Failed() {
			p.t.Logf("log of the %s", p.Tail())
		}
	})
}

// peak returns the maximum memory of the program in bytes.
func (p *measuredProcess) peak() int64 {
	p.t.Helper()
	used, err := p.Usage()
	if err != nil {
		p.t.Fatal(err)
	}
	return used.Peak
}

// awaitTimeout limits how long await waits. Attackers have a low priority, so on a busy machine some attacks begin late.
const awaitTimeout = 5 * time.Minute

// await waits until a condition is true.
func await(t *testing.T, what string, condition func() error) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		err := condition()
		if err == nil {
			return
		}
		if time.Since(began) > awaitTimeout {
			t.Fatalf("timeout waiting until %s, after %v: %v", what, awaitTimeout, err)
		}
	}
}

var client = http.Client{Timeout: 2 * time.Minute}

// get returns a response of the REST API.
func (s *server) get(path string) ([]byte, error) {
	response, err := client.Get(s.rest + path)
	if err != nil {
		return nil, err
	}
	return readBody(response)
}

func readBody(response *http.Response) ([]byte, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s: %.300s", response.Status, body)
	}
	return body, err
}

// versions returns the resourceVersion of each object of an account, by name.
func (s *server) versions(account string) (map[string]string, error) {
	body, err := s.get("/vedette/v1/objects?limit=1000&account=" + account)
	if err != nil {
		return nil, err
	}
	var page struct {
		Items []struct{ Name, ResourceVersion string }
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, o := range page.Items {
		found[o.Name] = o.ResourceVersion
	}
	return found, nil
}

// operate runs an operation and returns its outcome.
func (s *server) operate(operation string) (string, error) {
	response, err := client.Post(s.rest+"/vedette/v1/operations", "application/json", strings.NewReader(operation))
	if err != nil {
		return "", err
	}
	body, err := readBody(response)
	if err != nil && len(body) == 0 {
		return "", errors.Join(err, errors.New("no outcome"))
	}
	return string(bytes.TrimSpace(body)), nil
}
