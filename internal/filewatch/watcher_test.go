package filewatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// report is one call of changed.
type report struct {
	paths   []string
	content string // of all watched files, in order
}

// watchFiles watches files until the test ends.
func watchFiles(t *testing.T, cfg Config, files ...string) <-chan report {
	t.Helper()
	reports := make(chan report, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Watch(ctx, cfg, files, func(_ context.Context, change Change) []string {
			var content strings.Builder
			for _, file := range files {
				data, _ := os.ReadFile(file)
				content.Write(data)
			}
			reports <- report{change.Paths, content.String()}
			return files
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return reports
}

func expectReport(t *testing.T, reports <-chan report, content string, paths ...string) {
	t.Helper()
	select {
	case got := <-reports:
		if got.content != content || !slices.Equal(got.paths, paths) {
			t.Errorf("got %q of %q, want %q of %q", got.content, got.paths, content, paths)
		}
	case <-time.After(time.Minute):
		t.Fatalf("got no report of %q", content)
	}
}

// write replaces a file at once: a file that is written in place is empty for a moment, which is
// longer than the tests' Quiet if the machine is busy.
func write(t *testing.T, path, content string) {
	t.Helper()
	written := filepath.Join(t.TempDir(), "written")
	if err := os.WriteFile(written, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(written, path); err != nil {
		t.Fatal(err)
	}
}

// swap replaces the files of a directory as the kubelet replaces those of a ConfigMap.
func swap(t *testing.T, dir, version, content string) {
	t.Helper()
	directory := filepath.Join(dir, "..version-"+version)
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(directory, "agent.yml"), content)
	if err := os.Symlink(directory, filepath.Join(dir, "..new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..data/agent.yml", filepath.Join(dir, "agent.yml")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

// modes are with notifications alone, and without them.
var modes = map[string]Config{
	"notifications": {Quiet: 20 * time.Millisecond, Still: 50 * time.Millisecond, Interval: time.Hour},
	"intervals":     {Quiet: 20 * time.Millisecond, Still: 50 * time.Millisecond, Interval: 5 * time.Millisecond, WithoutNotifications: true},
}

func TestConfigMapReplacementIsReportedOnce(t *testing.T) {
	for name, cfg := range modes {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "agent.yml")
			swap(t, dir, "1", "one")
			reports := watchFiles(t, cfg, file)
			expectReport(t, reports, "one", file)
			swap(t, dir, "2", "two")
			expectReport(t, reports, "two", file)
			swap(t, dir, "3", "two") // the same content
			swap(t, dir, "4", "four")
			expectReport(t, reports, "four", file)
		})
	}
}

// TestEachChangeOfContentIsReported checks that files are reported that are rewritten, replaced, created and removed, and not
// those whose content is the same.
func TestEachChangeOfContentIsReported(t *testing.T) {
	for name, cfg := range modes {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			base, overlay := filepath.Join(dir, "agent.yml"), filepath.Join(dir, "agent-local.yml")
			write(t, base, "a")
			reports := watchFiles(t, cfg, base, overlay)
			expectReport(t, reports, "a", base, overlay)
			write(t, base, "b")
			expectReport(t, reports, "b", base)
			if err := os.Chmod(base, 0o640); err != nil {
				t.Fatal(err)
			}
			write(t, base, "b")
			write(t, overlay, "c")
			expectReport(t, reports, "bc", overlay)
			write(t, filepath.Join(dir, "other"), "x")
			write(t, filepath.Join(dir, "new"), "d")
			if err := os.Rename(filepath.Join(dir, "new"), overlay); err != nil {
				t.Fatal(err)
			}
			expectReport(t, reports, "bd", overlay)
			if err := os.Remove(overlay); err != nil {
				t.Fatal(err)
			}
			expectReport(t, reports, "b", overlay)
		})
	}
}

// TestFilesInLaterDirectoriesAreFound checks that a file is found whose directory did not exist, and one behind a link to
// another directory.
func TestFilesInLaterDirectoriesAreFound(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "later", "agent.yml")
	reports := watchFiles(t, Config{Quiet: time.Millisecond, Still: 20 * time.Millisecond, Interval: 5 * time.Millisecond}, file)
	expectReport(t, reports, "", file)
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "target"), "a")
	if err := os.Symlink("../target", file); err != nil {
		t.Fatal(err)
	}
	expectReport(t, reports, "a", file)
	write(t, filepath.Join(dir, "target"), "b")
	expectReport(t, reports, "b", file)
}

// writeInPlace truncates a file and writes it in pieces, with a pause before each.
func writeInPlace(t *testing.T, path string, pause time.Duration, pieces ...string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, piece := range pieces {
		time.Sleep(pause) // in the time of the bubble
		if _, err := file.WriteString(piece); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHalfWrittenFile checks that a file that is written in pieces is reported once it is complete, within
// 5 seconds, and that its content is the one that was reported.
func TestHalfWrittenFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(dir, "agent.yml")
		write(t, file, "complete")
		reports := watchFiles(t, Config{WithoutNotifications: true}, file)
		expectReport(t, reports, "complete", file)
		for i, pause := range []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 990 * time.Millisecond} {
			number := fmt.Sprint(i)
			writeInPlace(t, file, pause, "complete ", "again ", "and ", "once ", "more ", number)
			written := time.Now()
			expectReport(t, reports, "complete again and once more "+number, file)
			if took := time.Since(written); took > 5*time.Second {
				t.Errorf("pauses of %s: reported after %s", pause, took)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(700 * time.Millisecond)
		writeInPlace(t, file, 900*time.Millisecond, "a new ", "file")
		expectReport(t, reports, "a new file", file)
	})
}

// TestReplacedFilesAreComplete checks that files that are replaced as a whole are not waited for.
func TestReplacedFilesAreComplete(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.yml")
	never := stabilityCheck{still: time.Hour, maxWait: 2 * time.Hour}
	swap(t, dir, "1", "one")
	last, _ := fileStates{}.take([]string{file})
	swap(t, dir, "2", "two")
	now, changed := last.take([]string{file})
	if wait, _ := never.look(time.Now(), last, now, changed); wait != 0 || len(changed) != 1 {
		t.Errorf("a ConfigMap: got %d changes and a wait of %s", len(changed), wait)
	}
	for name, tt := range map[string]struct {
		replace func(path string) error
		waits   bool
	}{
		"a file that was moved":      {func(path string) error { return os.Rename(path+".new", path) }, runtime.GOOS != "linux"},
		"a file that was written to": {func(path string) error { return os.WriteFile(path, []byte("new"), 0o600) }, true},
		"another file, written":      {func(path string) error { _ = os.Remove(path); return os.WriteFile(path, []byte("new"), 0o600) }, true},
		"no file":                    {os.Remove, true},
		"an empty file":              {func(path string) error { return os.Truncate(path, 0) }, true},
	} {
		path := filepath.Join(t.TempDir(), "k")
		for _, each := range []string{path, path + ".new"} {
			if err := os.WriteFile(each, []byte(each), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		old := time.Now().Add(-time.Minute)
		if err := os.Chtimes(path+".new", old, old); err != nil {
			t.Fatal(err)
		}
		last, _ := fileStates{}.take([]string{path})
		if err := tt.replace(path); err != nil {
			t.Fatal(err)
		}
		now, changed := last.take([]string{path})
		w := never
		if wait, _ := w.look(time.Now(), last, now, changed); wait > 0 != tt.waits || len(changed) != 1 {
			t.Errorf("%s: got %d changes and a wait of %s, want one: %t", name, len(changed), wait, tt.waits)
		}
	}
}

// TestChangeWhileReadingIsReportedAgain checks that a change says so if a file is written again while it is read, and that
// another report follows.
func TestChangeWhileReadingIsReportedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yml")
	synctest.Test(t, func(t *testing.T) {
		write(t, file, "one")
		ctx, cancel := context.WithCancel(t.Context())
		var read []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			Watch(ctx, Config{WithoutNotifications: true}, []string{file}, func(_ context.Context, change Change) []string {
				if len(read) == 1 {
					writeInPlace(t, file, 0, "thr") // before it is read
				}
				content, _ := os.ReadFile(file)
				read = append(read, fmt.Sprint(string(content), " ", change.IsCurrent([]string{file})))
				return []string{file}
			})
		}()
		time.Sleep(5 * time.Second)
		write(t, file, "two")
		time.Sleep(5 * time.Second)
		write(t, file, "three")
		time.Sleep(5 * time.Second)
		cancel()
		<-done
		if want := []string{"one true", "thr false", "thr true", "three true"}; !slices.Equal(read, want) {
			t.Errorf("got %q, want %q", read, want)
		}
	})
}

// TestAddedFilesAreWatchedAndReported checks that files which a change adds are watched and reported, because they may have
// been read before, and have changed meanwhile. Each report may lead to further ones.
func TestAddedFilesAreWatchedAndReported(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i := range 2 * maxReports {
		files = append(files, filepath.Join(dir, fmt.Sprint(i)))
		write(t, files[i], "a")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls, known := make(chan []string, 100), 1
	go Watch(ctx, Config{Quiet: time.Millisecond, Still: time.Millisecond, Interval: 5 * time.Millisecond}, files[:1], func(_ context.Context, change Change) []string {
		calls <- change.Paths
		known = min(known+1, len(files))
		return files[:known]
	})
	for _, file := range files {
		if got := <-calls; !slices.Equal(got, []string{file}) {
			t.Errorf("got a report of %q, want %s", got, file)
		}
	}
	last := files[len(files)-1]
	write(t, last, "b")
	if got := <-calls; !slices.Equal(got, []string{last}) {
		t.Errorf("got a change of %q, want %s", got, last)
	}
}

// TestFilesThatWereReadBefore checks that a file is reported which changed after somebody read it and
// before Watch has looked at it.
func TestFilesThatWereReadBefore(t *testing.T) {
	for _, written := range []time.Duration{-time.Hour, 0} { // before the start; a young file is not taken for complete at once
		synctest.Test(t, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			write(t, file, "one")
			read, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, file, "two")
			if at := time.Now().Add(written); os.Chtimes(file, at, at) != nil {
				t.Fatal("cannot set the time of the file")
			}
			reports := watchFiles(t, Config{WithoutNotifications: true}, file)
			expectReport(t, reports, "two", file)
			if string(read) != "one" {
				t.Errorf("read %q before", read)
			}
		})
	}
}

// TestChangesAreReportedAfterAPause checks that a change is reported after a pause, and not kept back for ever.
func TestChangesAreReportedAfterAPause(t *testing.T) {
	start := time.Now()
	s := debounce{quiet: 250 * time.Millisecond, longest: 2 * time.Second}
	for _, tt := range []struct{ at, want time.Duration }{
		{0, 250 * time.Millisecond},
		{time.Second, 250 * time.Millisecond},
		{1900 * time.Millisecond, 100 * time.Millisecond},
		{2100 * time.Millisecond, 0},
	} {
		if got := s.notified(start.Add(tt.at)); got != tt.want {
			t.Errorf("a notification after %s: got a pause of %s, want %s", tt.at, got, tt.want)
		}
	}
	s.looked()
	if got := s.notified(start.Add(time.Hour)); got != s.quiet {
		t.Errorf("the first notification after a look: got a pause of %s, want %s", got, s.quiet)
	}
}

// TestPipesAreNotRead checks that a pipe is left to whoever it is meant for.
func TestPipesAreNotRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if state := stateOf(fmt.Sprintf("/dev/fd/%d", r.Fd()), fileState{}); state.info != nil {
		t.Error("the pipe counts as a file")
	}
	content := make([]byte, 1)
	if _, err := r.Read(content); err != nil || string(content) != "x" {
		t.Errorf("got %q, %v, want the content of the pipe", content, err)
	}
}

// TestFilesAreReadOnce checks that a file which was written just before the first look, as those of a
// new Pod are, is not read again with each look.
func TestFilesAreReadOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	synctest.Test(t, func(t *testing.T) {
		write(t, file, "a")
		if err := os.Chtimes(file, time.Now(), time.Now()); err != nil { // the bubble's clock
			t.Fatal(err)
		}
		w := &watcher{files: []string{file}, last: fileStates{}}
		w.last, _ = w.last.take(w.files)
		time.Sleep(3 * time.Second)
		if w.hasChanged() {
			t.Error("the file counts as changed")
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if !w.last[file].looksLike(info) {
			t.Error("the file will be read again")
		}
	})
}

// TestChangesWithoutEnd checks that a file which changes every 100 ms is reported now and then, and
// that its last content is reported.
func TestChangesWithoutEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yml")
	synctest.Test(t, func(t *testing.T) {
		write(t, file, "0")
		ctx, cancel := context.WithCancel(t.Context())
		var contents []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			Watch(ctx, Config{WithoutNotifications: true}, []string{file}, func(context.Context, Change) []string {
				content, _ := os.ReadFile(file)
				contents = append(contents, string(content))
				return []string{file}
			})
		}()
		const changes = 600
		for i := range changes {
			time.Sleep(100 * time.Millisecond) // the bubble's clock
			writeInPlace(t, file, 0, fmt.Sprint(i+1))
		}
		time.Sleep(5 * time.Second)
		cancel()
		<-done
		if n := len(contents); n < 2 || n > 60/30+2 { // at the start, each 30 s, at the end
			t.Errorf("got %d reports in a minute", n)
		}
		if last := contents[len(contents)-1]; last != fmt.Sprint(changes) {
			t.Errorf("got %s last, want %d", last, changes)
		}
	})
}

// TestFilesInTheWay checks that a directory in place of a file, and links to nowhere, are changes, and
// that the file is noticed when it returns.
func TestFilesInTheWay(t *testing.T) {
	for name, cfg := range modes {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "agent.yml")
			write(t, file, "a")
			reports := watchFiles(t, cfg, file)
			expectReport(t, reports, "a", file)
			for _, replace := range []func() error{
				func() error { return os.Mkdir(file, 0o700) },
				func() error { return os.Symlink(filepath.Join(filepath.Dir(file), "nowhere"), file) },
				func() error { return nil }, // it is gone
			} {
				if err := os.RemoveAll(file); err != nil {
					t.Fatal(err)
				}
				if err := replace(); err != nil {
					t.Fatal(err)
				}
				expectReport(t, reports, "", file)
				if err := os.RemoveAll(file); err != nil {
					t.Fatal(err)
				}
				write(t, file, "a")
				expectReport(t, reports, "a", file)
			}
		})
	}
}
