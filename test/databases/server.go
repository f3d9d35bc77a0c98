package databases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Options configures a server.
type Options struct {
	// Durable makes the server wait for the disk at each commit, as in production. Most tests do
	// not need that.
	Durable bool
	// Settings are lines of the server's configuration, for example "max_connections=5".
	Settings []string
}

// Server is a database server of one test, which may kill it.
type Server struct {
	URL string // of an existing, empty database

	t       reporter
	dir     string
	account *syscall.Credential // nil means the test's own
	program string
	args    []string
	quit    syscall.Signal // the signal that asks it to exit
	ping    func(ctx context.Context) error
	// beforeStart returns arguments of one start; nil for none.
	beforeStart func() ([]string, error)

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has exited
}

// reporter receives what fails: the test that started the server, or standard error.
type reporter interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

const startTime = 60 * time.Second // a busy machine may need that long

// Start starts the server and returns when it answers.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) start() error {
	if s.beforeStart == nil {
		return s.startWith()
	}
	args, err := s.beforeStart()
	if err != nil {
		return err
	}
	return s.startWith(args...)
}

// startWith starts the server with arguments that only this start has.
func (s *Server) startWith(args ...string) error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.program, slices.Concat(s.args, args)...)
	cmd.Dir = s.dir
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = attributes(s.account)
	done, err := launch(cmd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.cmd, s.done = cmd, done
	s.mu.Unlock()
	return s.await(done)
}

// launch starts a command on a thread that lives as long as the command, because the kernel sends
// the signal for the parent's death when the thread that started the command exits.
func launch(cmd *exec.Cmd) (chan struct{}, error) {
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the exit status of a server that is killed does not matter
		}
		close(done)
	}()
	return done, <-started
}

// await polls until the server answers or its process exits.
func (s *Server) await(done <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	var err error
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		err = s.ping(ctx)
		if err == nil {
			tick.Stop()
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("%s exited before it answered, its log:\n%s", s.program, s.log())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w, its log:\n%s", s.program, err, s.log())
		case <-tick.C:
		}
	}
}

func (s *Server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text[max(0, len(text)-4000):])
}

// Kill kills the server with all its processes, like the loss of its machine, and returns when they
// are gone.
func (s *Server) Kill() {
	if cmd, done := s.running(); cmd != nil {
		s.signal(cmd, syscall.SIGSTOP) // because a stopped process starts no children
		orphans := children(cmd.Process.Pid)
		for _, pid := range orphans {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				s.t.Error(err)
			}
		}
		s.signal(cmd, syscall.SIGKILL)
		<-done
		s.awaitEnd(orphans)
	}
}

// Pause freezes the server with all its processes. Its connections stay open.
func (s *Server) Pause() { s.signalAll(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.signalAll(syscall.SIGCONT) }

// signalAll signals each process before those that it has started, because it starts no others once it is stopped.
func (s *Server) signalAll(signal syscall.Signal) {
	cmd, _ := s.running()
	if cmd == nil {
		return
	}
	s.signal(cmd, signal)
	s.signalChildren(cmd.Process.Pid, signal)
}

func (s *Server) signalChildren(parent int, signal syscall.Signal) {
	for _, pid := range children(parent) {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			s.t.Error(err)
		}
		s.signalChildren(pid, signal)
	}
}

// awaitEnd polls until the processes have released everything: PostgreSQL refuses to start while a
// process is attached to its shared memory.
func (s *Server) awaitEnd(pids []int) {
	deadline := time.Now().Add(startTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, pid := range pids {
		for isAlive(pid) {
			if time.Now().After(deadline) {
				s.t.Errorf("process %d does not exit", pid)
				return
			}
			<-tick.C
		}
	}
}

// isAlive reports whether a process is running. A zombie has released its resources.
func isAlive(pid int) bool {
	_, state, found := parentOf(pid)
	return found && state != "Z" && state != "X"
}

// Stop asks the server to exit, which closes its connections, and returns when it is gone.
func (s *Server) Stop() {
	if cmd, done := s.running(); cmd != nil {
		s.signal(cmd, s.quit)
		<-done
	}
}

func (s *Server) running() (*exec.Cmd, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd, s.done
}

func (s *Server) signal(cmd *exec.Cmd, signal syscall.Signal) {
	if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
}

// children returns the processes that a process has started. PostgreSQL's processes have sessions
// of their own, so that no process group contains them all. Without /proc they outlive their parent
// for a moment.
func children(parent int) []int {
	entries, _ := filepath.Glob("/proc/[0-9]*") // fails only for a malformed pattern
	var pids []int
	for _, path := range entries {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if of, _, found := parentOf(pid); found && of == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf reads a process's parent and state from /proc.
func parentOf(pid int) (parent int, state string, found bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", false // the process has ended
	}
	// The format is "pid (name) state parent ...", and the name may contain anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0, "", false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, fields[0], err == nil
}

// credentialOf returns the credential of a system user, for servers that refuse to run as root. It
// is nil if the test does not run as root.
func credentialOf(name string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// newServer creates a directory that the server's user may write to.
func newServer(t testing.TB, systemUser string) (*Server, error) {
	account, err := credentialOf(systemUser)
	if err != nil {
		return nil, err
	}
	// A killed test leaves its directory, so the name contains its process id.
	//nolint:usetesting // the system user of the database must be able to enter the directory
	dir, err := os.MkdirTemp("", fmt.Sprintf("vedette-%s-%d-", systemUser, os.Getpid()))
	if err != nil {
		return nil, err
	}
	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			return nil, err
		}
	}
	return &Server{t: t, dir: dir, account: account}, nil
}

// prepare runs one of the server's tools and waits for it.
func (s *Server) prepare(program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+s.dir) // otherwise another server may delete its temporary tables
	cmd.SysProcAttr = attributes(s.account)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// remove stops the server and deletes its data.
func (s *Server) remove() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}
