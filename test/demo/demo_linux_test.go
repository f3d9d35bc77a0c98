package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestContextEndsWithItsProcess checks that a context is canceled when a process ends, although nobody reaps it.
func TestContextEndsWithItsProcess(t *testing.T) {
	sleep := exec.CommandContext(t.Context(), "sleep", "3600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := endWith(cancel, os.Getppid(), 0, sleep.Process.Pid); err != nil || ctx.Err() != nil {
		t.Fatalf("got %v, %v, want a context that has not ended", err, ctx.Err())
	}
	if err := sleep.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), strconv.Itoa(sleep.Process.Pid)) {
		t.Errorf("got the cause %v, want one with the process", cause)
	}
	_ = sleep.Wait()
	if err := endWith(cancel, sleep.Process.Pid); err == nil {
		t.Error("a process that has ended: got no error")
	}
}

// TestEndWithTerminal checks that a context is canceled when the other side of a terminal is closed, and not
// for what is not a terminal.
func TestEndWithTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	endWithTerminal(cancel, int(terminal.Fd()))
	endWithTerminal(cancel, int(read.Fd()))
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := master.WriteString("input\n"); err != nil || ctx.Err() != nil {
		t.Fatalf("got %v, %v, want a context that has not ended", err, context.Cause(ctx))
	}
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "terminal") {
		t.Errorf("got the cause %v, want that of the terminal", cause)
	}
}

// TestEverythingEnds runs `make demo`, ends one of its processes, and checks that none is left.
func TestEverythingEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts control planes")
	}
	for _, tt := range []struct {
		name   string
		target string // the name of the process that gets the signal; empty to close the output
		signal syscall.Signal
	}{
		{"make demo | head", "", 0},
		{"TERM to make", "make", syscall.SIGTERM},
		{"KILL to make", "make", syscall.SIGKILL},
		{"HUP to the demo", "demo", syscall.SIGHUP},
		{"KILL to the demo", "demo", syscall.SIGKILL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			temporary := t.TempDir()
			demo := exec.CommandContext(t.Context(), "make", "--no-print-directory", "demo")
			demo.Dir, demo.Env = filepath.Join("..", ".."), append(os.Environ(), "MAKEFLAGS=", "TMPDIR="+temporary)
			demo.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			out, err := demo.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			demo.Stderr = demo.Stdout
			if err := demo.Start(); err != nil {
				t.Fatal(err)
			}
			session := demo.Process.Pid
			t.Cleanup(func() { killAll(session) })
			printed := readUntil(out, "server is up")
			running := processesOf(session)
			target := slices.IndexFunc(running, func(p process) bool { return p.name == tt.target })
			if target < 0 && tt.target != "" || len(running) < 8 {
				t.Fatalf("got the processes %v, want make, the demo, control planes and the server: %s", running, printed)
			}
			if tt.target == "" {
				err = out.Close()
			} else {
				err = syscall.Kill(running[target].pid, tt.signal)
			}
			if err != nil {
				t.Fatal(err)
			}
			readUntil(out, "") // until no process has the output open
			_ = demo.Wait()
			for deadline := time.Now().Add(time.Minute); len(processesOf(session)) > 0 && time.Now().Before(deadline); {
				time.Sleep(50 * time.Millisecond)
			}
			if left := processesOf(session); len(left) > 0 {
				t.Errorf("got the processes %v, want none", left)
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 && (tt.target != "demo" || tt.signal != syscall.SIGKILL) {
				t.Errorf("got the temporary directories %v, %v, want none", left, err)
			}
		})
	}
}

// readUntil reads lines until one contains text, or all if the text is empty.
func readUntil(r interface{ Read([]byte) (int, error) }, text string) string {
	var read strings.Builder
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		read.WriteString(lines.Text() + "\n")
		if text != "" && strings.Contains(lines.Text(), text) {
			break
		}
	}
	return read.String()
}

type process struct {
	pid  int
	name string
}

// processesOf returns the processes of a session that run. See proc_pid_stat(5): the name is in
// parentheses, and the state, the parent, the group and the session follow it.
func processesOf(session int) (found []process) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		head, rest, _ := strings.Cut(string(stat), " (")
		end := strings.LastIndex(rest, ") ")
		if end < 0 {
			continue
		}
		fields := strings.Fields(rest[end+2:])
		pid, err := strconv.Atoi(head)
		if err == nil && fields[3] == strconv.Itoa(session) && fields[0] != "Z" {
			found = append(found, process{pid, rest[:end]})
		}
	}
	return found
}

func killAll(session int) {
	for _, p := range processesOf(session) {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}
