//go:build linux

package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ownerEnv makes this test binary start a plane, print its directory and wait to be killed.
const ownerEnv = "VEDETTE_TEST_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) != "" {
		runOwner()
		return
	}
	os.Exit(m.Run())
}

func runOwner() {
	p, err := Start(context.Background(), Options{Controllers: true, Nodes: 1, Log: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.Dir)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	p, err := Start(testContext(t), Options{Controllers: true, Log: t.Output()})
	must(t, err)
	if found := processesOf(t, p.Dir); len(found) != 5 {
		t.Errorf("got processes %q with the plane's directory, want 5", found)
	}
	must(t, p.Stop())
	wantCleanedUp(t, p.Dir)
	must(t, p.Stop())
}

func TestKilledOwnerIsCleanedUp(t *testing.T) {
	t.Parallel()
	if _, err := Build(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	owner := exec.CommandContext(ctx, os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"=1")
	owner.Stderr = t.Output()
	_, err := owner.StdinPipe() // stays open until the test ends
	must(t, err)
	stdout, err := owner.StdoutPipe()
	must(t, err)
	must(t, owner.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	dir := strings.TrimSpace(line)
	if found := processesOf(t, dir); len(found) != 5 {
		t.Errorf("got processes %q with the plane's directory, want 5", found)
	}
	removeStaleDirs()
	if !exists(filepath.Join(dir, "kubeconfig")) {
		t.Fatal("a running plane was swept")
	}
	must(t, owner.Process.Kill())
	_ = owner.Wait() // it was killed
	for len(processesOf(t, dir)) > 0 {
		if ctx.Err() != nil {
			t.Fatalf("processes outlived their owner: %q", processesOf(t, dir))
		}
		waitPollInterval(ctx)
	}
	removeStaleDirs()
	wantCleanedUp(t, dir)
}

func waitPollInterval(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	<-ctx.Done()
}

func TestUnexpectedExitIsReported(t *testing.T) {
	t.Parallel()
	p, err := Start(testContext(t), Options{Log: t.Output()})
	must(t, err)
	defer func() { must(t, p.Stop()) }()
	must(t, p.Err())
	process, err := os.FindProcess(p.PIDs()[etcd])
	must(t, err)
	must(t, process.Kill()) // without the plane's methods
	err = p.Await(testContext(t), "/no/such/path", func(Object) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "etcd exited unexpectedly (signal: killed)") {
		t.Errorf("got error %v, want that etcd was killed", err)
	}
}

func TestSchedulerIsRestarted(t *testing.T) {
	t.Parallel()
	p, err := Start(testContext(t), Options{Log: t.Output(), Controllers: true})
	must(t, err)
	defer func() { must(t, p.Stop()) }()
	for range maxRestarts + 1 {
		must(t, p.Err())
		pid := awaitRunning(t, p, scheduler)
		process, err := os.FindProcess(pid)
		must(t, err)
		must(t, process.Kill()) // without the plane's methods
		for p.PIDs()[scheduler] == pid {
			waitPollInterval(testContext(t))
		}
	}
	err = p.Err()
	if err == nil || !strings.Contains(err.Error(), "kube-scheduler exited unexpectedly (signal: killed)") {
		t.Errorf("got error %v, want that the scheduler was killed too often", err)
	}
	p.KillControllers()
	must(t, p.StartControllers(testContext(t)))
	must(t, p.Err())
}

// awaitRunning waits until a program runs.
func awaitRunning(t *testing.T, p *Plane, name string) int {
	t.Helper()
	for deadline := testContext(t); deadline.Err() == nil; waitPollInterval(deadline) {
		if pid := p.PIDs()[name]; pid != 0 {
			return pid
		}
	}
	t.Fatalf("%s is not running", name)
	return 0
}

func TestDirIsReusedOnlyAfterItsOwnerEnded(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "p")
	claimed, lock, err := claimDir(dir)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(claimed, "data"), nil, 0o600))
	if _, _, err := claimDir(dir); err == nil || !strings.Contains(err.Error(), "a plane is running in") {
		t.Errorf("claiming a running plane's directory: got %v", err)
	}
	lock.release()
	_, lock, err = claimDir(dir)
	must(t, err)
	defer lock.release()
	if exists(filepath.Join(dir, "data")) {
		t.Error("the dead plane's data still exists")
	}
}

func TestNonEmptyDirIsRejected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "thesis.txt")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, _, err := claimDir(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("claiming a directory with a file: got %v", err)
	}
	if !exists(file) {
		t.Error("the file was removed")
	}
	long := filepath.Join(dir, strings.Repeat("x", 100))
	if _, _, err := claimDir(long); err == nil || !strings.Contains(err.Error(), "Unix sockets") {
		t.Errorf("claiming a directory with a long name: got %v", err)
	}
}

func TestReservedPortStaysReserved(t *testing.T) {
	t.Parallel()
	ports := map[int]bool{}
	for range 50 {
		p, err := reservePort()
		must(t, err)
		defer p.release()
		if ports[p.number] {
			t.Fatalf("port %d was reserved twice", p.number)
		}
		ports[p.number] = true
		if got := canListen(t, p.number); got {
			t.Fatalf("another socket could listen on reserved port %d", p.number)
		}
	}
}

// canListen reports whether a socket that does not share its port can listen on a port.
func canListen(t *testing.T, port int) bool {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	must(t, listener.Close())
	return true
}
