package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stageVariable = "VEDETTE_NODE_STAGE" // what this process is
	dirVariable   = "VEDETTE_NODE_DIR"   // the directory of all files

	wantedVariable = "VEDETTE_TEST_NODE" // set by "make chart-node", because it takes ten minutes to build a node's programs

	stageInit  = "init"  // the first process of the namespaces
	stageTests = "tests" // the tests in them
	stageClean = "clean" // removes what is left when the others have ended

	dirPrefix = "vedette-node-"
)

// Main runs the tests of a package in namespaces of their own, after prepare, which may use the machine's network, and writes what
// tests need to a directory: that of [Dir]. If the machine cannot have a node, it runs them as they are, and [Need] skips those that
// need one.
func Main(m *testing.M, prepare func(ctx context.Context, dir string) error) int {
	switch os.Getenv(stageVariable) {
	case stageInit:
		return report(runInit())
	case stageTests:
		return m.Run()
	case stageClean:
		return report(0, clean(Dir()))
	}
	if Missing() != "" {
		return m.Run()
	}
	return report(runIsolated(prepare))
}

// Dir returns the directory of all files of the tests' node. It is removed at the end.
func Dir() string { return os.Getenv(dirVariable) }

// Need skips a test if the machine cannot have a node, and says what is missing.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(stageVariable) != stageTests {
		if reason := Missing(); reason != "" {
			t.Skip("a node needs " + reason)
		}
		t.Fatal("TestMain must call node.Main")
	}
}

// Missing says what keeps this machine from having a node; "" if nothing does.
func Missing() string {
	if os.Getenv(wantedVariable) == "" {
		return wantedVariable + "=1, as \"make chart-node\" sets it"
	}
	if os.Geteuid() != 0 {
		return "root, for namespaces and mounts"
	}
	for program, pack := range map[string]string{"runc": "runc", "iptables": "iptables", "ipset": "ipset", "ip": "iproute2", "busybox": "busybox-static",
		filepath.Join(pluginDir, "bridge"): "containernetworking-plugins"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("%s: apt-get install %s", filepath.Base(program), pack)
		}
	}
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids"} {
		if _, err := os.Stat(filepath.Join(cgroupRoot, controller)); err != nil {
			return fmt.Sprintf("control groups of version 1 at %s, with the controller %s", cgroupRoot, controller)
		}
	}
	if err := tryNamespaces(); err != nil {
		return fmt.Sprintf("namespaces, which cannot be made here (%v)", err)
	}
	return ""
}

// namespaces are those that a node is in.
const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

func tryNamespaces() error {
	cmd := exec.Command("ip", "link")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run ip: %w", err)
	}
	return nil
}

// report prints an error. A run of tests that has failed says so itself.
func report(code int, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		return max(code, 1)
	}
	return code
}

// runIsolated runs this program again as the init of new namespaces, and cleans up after it.
func runIsolated(prepare func(context.Context, string) error) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := build(ctx, os.Stderr); err != nil {
		return 1, err
	}
	removeStale()
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return 1, fmt.Errorf("create a directory: %w", err)
	}
	lock, err := lockOwner(dir, os.O_CREATE)
	if err != nil {
		return 1, err
	}
	defer lock.Close()
	finish, err := startCleaner(dir, lock)
	if err != nil {
		return 1, errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { err = errors.Join(err, finish()) }()
	if prepare != nil {
		if err := prepare(ctx, dir); err != nil {
			return 1, err
		}
	}
	return runAgain(ctx, stageInit, dir, namespaces)
}

// runAgain runs this program with the same arguments in a stage, and returns its exit code. The program dies with this one: the
// kernel sends the death signal when the thread that forked ends, so that thread waits.
func runAgain(ctx context.Context, stage, dir string, flags uintptr) (int, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = stageEnvironment(stage, dir)
	cmd.Stdin = os.Stdin
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		ended <- cmd.Run()
	}()
	err := <-ended
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), context.Cause(ctx)
	}
	if err != nil {
		return 1, fmt.Errorf("run the stage %s: %w", stage, err)
	}
	return 0, nil
}

// stageEnvironment replaces the variables of an earlier stage, because the first of several counts.
func stageEnvironment(stage, dir string) []string {
	others := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, stageVariable+"=") || strings.HasPrefix(variable, dirVariable+"=")
	})
	return append(others, stageVariable+"="+stage, dirVariable+"="+dir)
}

// runInit is the first process of the namespaces: it prepares them, runs the tests, and waits for processes whose parents have ended.
func runInit() (int, error) {
	dir := Dir()
	if err := prepareMounts(dir); err != nil {
		return 1, err
	}
	if err := prepareNetwork(); err != nil {
		return 1, err
	}
	if err := unix.Sethostname([]byte(Name)); err != nil {
		return 1, fmt.Errorf("set the host name: %w", err)
	}
	// ForkExec rather than os/exec, because Wait4 below waits for every process.
	runtime.LockOSThread()
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{
		Env: stageEnvironment(stageTests, dir), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 1, fmt.Errorf("run the tests: %w", err)
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for the tests: %w", err)
		case ended == pid && status.Signaled():
			return 1, fmt.Errorf("the tests were ended by the signal %v", status.Signal())
		case ended == pid:
			return status.ExitStatus(), nil
		}
	}
}

// prepareMounts makes mounts private, shows the processes and interfaces of the namespaces, and lets what daemons write to fixed
// places go to the directory.
func prepareMounts(dir string) error {
	groups := filepath.Join(dir, "cgroup")
	steps := []mount{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{cgroupRoot, groups, "", unix.MS_BIND | unix.MS_REC, ""},
		{"sysfs", "/sys", "sysfs", 0, ""},
		{groups, cgroupRoot, "", unix.MS_BIND | unix.MS_REC, ""},
		{"tmpfs", "/run", "tmpfs", 0, "mode=755"},
		overlay(dir, "/etc"),
		overlay(dir, "/var"),
	}
	for _, at := range []string{"cgroup", "etc", "etc-work", "var", "var-work"} {
		if err := os.Mkdir(filepath.Join(dir, at), 0o755); err != nil {
			return fmt.Errorf("create a directory: %w", err)
		}
	}
	for _, s := range steps {
		if err := unix.Mount(s.source, s.target, s.kind, s.flags, s.data); err != nil {
			return fmt.Errorf("mount %s at %s: %w", s.source, s.target, err)
		}
	}
	if err := unix.Unmount(groups, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", groups, err)
	}
	return nil
}

// mount has the arguments of mount(2).
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

// overlay returns a mount that shows a directory, and keeps changes in another one.
func overlay(dir, target string) mount {
	upper := filepath.Join(dir, filepath.Base(target))
	return mount{"overlay", target, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s-work", target, upper, upper)}
}

// startCleaner starts a process that removes what belongs to the directory when this process has ended, in all cases. The function
// that it returns lets it do that now, and waits for it.
//
// It shares the lock that shows that the directory is in use.
func startCleaner(dir string, lock *os.File) (finish func() error, err error) {
	end, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the process that cleans up: %w", err)
	}
	defer end.Close()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = stageEnvironment(stageClean, dir)
	var said strings.Builder
	cmd.Stdin, cmd.Stderr = end, &said
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the process that cleans up: %w", err), hold.Close())
	}
	return func() error {
		closeErr := hold.Close()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("clean up after the node: %w: %s", err, said.String())
		}
		return closeErr
	}, nil
}

// cleanTimeout limits the removal of control groups, whose processes take a moment to end.
const cleanTimeout = 30 * time.Second

// clean waits until nothing is left that holds standard input, and removes the control groups and the directory.
func clean(dir string) error {
	if err := waitForEnd(os.Stdin); err != nil {
		return err
	}
	return remove(dir, cleanTimeout)
}

func waitForEnd(file *os.File) error {
	for {
		if _, err := file.Read(make([]byte, 1)); err != nil {
			return nil //nolint:nilerr // the end of the file is what it waits for
		}
	}
}

// removeStale removes what runs left whose cleaners were killed, too.
func removeStale() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		if lock, err := lockOwner(dir, 0); err == nil {
			_ = remove(dir, 0) // the next run tries again
			lock.Close()
		}
	}
}

// lockOwner locks the file that shows that a directory is in use.
func lockOwner(dir string, flag int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "owner.lock"), os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory of a node: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return file, nil
}

func remove(dir string, timeout time.Duration) error {
	if err := removeCgroups(filepath.Base(dir), timeout); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
