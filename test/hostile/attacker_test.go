package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// The environment variables that tell a process of this test that it is the attacker, which attack
// it runs, and against which server.
const (
	attackVariable = "VEDETTE_TEST_ATTACK"
	serverVariable = "VEDETTE_TEST_SERVER"
)

// TestMain runs the tests, or one attack if a test has started this process for it.
func TestMain(m *testing.M) {
	name := os.Getenv(attackVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	run := func() error { return runAttack(name, os.Getenv(serverVariable)) }
	if name == allAttacks {
		run = runAllAttacks
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "attack %q: %v\n", name, err)
		os.Exit(1)
	}
}

// withAttack runs an attack in a process of its own while action runs. A hostile host takes no
// processor time from the server or from honest agents, so the process has the lowest priority.
func withAttack(t *testing.T, s *server, attack string, action func()) {
	t.Helper()
	cmd := exec.Command("nice", "-n", "19", os.Args[0])
	cmd.Env = append(os.Environ(), attackVariable+"="+attack, serverVariable+"="+s.grpc)
	cmd.Stderr = os.Stderr
	stop, err := cmd.StdinPipe() // closing it ends the attack, even if this process dies
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = stop.Close()
		select {
		case err = <-ended:
		case <-time.After(awaitTimeout):
			_ = cmd.Process.Kill()
			err = errors.Join(fmt.Errorf("the attack does not end"), <-ended)
		}
		if err != nil {
			t.Errorf("attack %q: %v", attack, err)
		}
	}()
	action()
}

// runAttack runs an attack until standard input is closed.
func runAttack(name, server string) error {
	ctx, cancel := context.WithCancel(context.Background())
	host := &attacker{server: server, from: "127.0.0.2", ctx: ctx}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		host.closeAll()
	}()
	if name == slowAttack {
		host.sendSlowly()
		return nil
	}
	for _, a := range attacks {
		if a.name == name {
			a.run(host)
			return nil
		}
	}
	return errors.New("unknown attack")
}

// attacker is a host of hostile agents.
type attacker struct {
	server string // address of the server
	from   string // the attacker's own address
	ctx    context.Context

	mu    sync.Mutex
	conns []*grpc.ClientConn
}

// pause waits between two actions, and reports whether to continue.
func (a *attacker) pause(d time.Duration) bool {
	runtime.Gosched()
	select {
	case <-a.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// connect opens a connection from the attacker's address.
func (a *attacker) connect() *grpc.ClientConn {
	conn, err := dial(a.server, a.from)
	if err != nil {
		panic(err) // a bug in this test: nothing is dialed yet
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = append(a.conns, conn)
	return conn
}

func (a *attacker) closeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.conns {
		_ = conn.Close()
	}
}
