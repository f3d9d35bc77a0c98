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
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/programs"
)

// server is a vedette-server process, built as for users because its memory is measured.
type server struct {
	t    *testing.T
	grpc string
	rest string
	log  string
	pid  int
	done chan struct{} // closed when it has exited
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
	s := &server{t: t, grpc: fmt.Sprintf("127.0.0.1:%d", grpc), rest: fmt.Sprintf("http://127.0.0.1:%d", rest), log: filepath.Join(dir, "server.log"), done: make(chan struct{})}
	s.start(exec.Command(binary, "--config", config))
	await(t, "the server is ready", func() error {
		s.checkRunning()
		_, err := s.get("/vedette/v1/accounts")
		return err
	})
	return s
}

// checkRunning ends the test if the process has exited. Only the test's goroutine may call it.
func (s *server) checkRunning() {
	s.t.Helper()
	select {
	case <-s.done:
		s.t.Fatal("the process has exited")
	default:
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

func (s *server) start(cmd *exec.Cmd) {
	s.t.Helper()
	log, err := os.Create(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // because the kernel's death signal depends on the thread
		defer runtime.UnlockOSThread()
		defer close(s.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatal(err)
	}
	s.pid = cmd.Process.Pid
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.done
		if s.t.Failed() {
			text, _ := os.ReadFile(s.log)
			s.t.Logf("log of the server:\n%s", text[max(0, len(text)-4000):])
		}
	})
}

// peak returns the maximum memory of the server in bytes.
func (s *server) peak() int64 {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		s.t.Fatalf("the server has exited: %v", err)
	}
	kib := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if kib == nil {
		s.t.Fatalf("no VmHWM in %s", status)
	}
	n, err := strconv.ParseInt(string(kib[1]), 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n << 10
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
