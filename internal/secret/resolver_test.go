package secret_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
)

// memory is an engine with documents in memory: encrypted:memory!d:DOCUMENT!k:KEY.
type memory struct {
	mu        sync.Mutex
	documents map[string]string
	down      bool
	hangs     bool
	fetches   int
	closed    bool
}

func (m *memory) Locate(r secret.Reference) (secret.Location, error) {
	params, err := r.Params([]string{"d", "k"}, nil)
	if err != nil {
		return secret.Location{}, err
	}
	return secret.Location{
		Document: params["d"],
		Fetch:    func(ctx context.Context) ([]byte, error) { return m.fetch(ctx, params["d"]) },
		Select:   func(document []byte) (string, error) { return secret.JSONKey(document, params["k"]) },
	}, nil
}

func (m *memory) fetch(ctx context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	m.fetches++
	document, ok := m.documents[name]
	hangs, down := m.hangs, m.down
	m.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, vedette.Errorf(vedette.Unavailable, "memory did not answer: %w", context.Cause(ctx))
	}
	select {
	case <-time.After(time.Second): // so that fetches overlap
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch {
	case down:
		return nil, vedette.Errorf(vedette.Unavailable, "memory is down")
	case !ok:
		return nil, vedette.Errorf(vedette.NotFound, "memory has no document %s", name)
	}
	return []byte(document), nil
}

func (m *memory) set(name, document string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.documents[name] = document
}

func (m *memory) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *memory) Close() error {
	m.closed = true
	return nil
}

func newMemory() *memory {
	return &memory{documents: map[string]string{"a": `{"x": "secret-ax", "y": "secret-ay"}`, "b": `{"x": "secret-bx"}`}}
}

func newResolver(t *testing.T, engines map[string]secret.Engine) *secret.Resolver {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	engines["noop"] = secret.Noop{}
	r := secret.New(engines, secret.Timing{})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if left := tempFiles(t); len(left) > 0 {
			t.Errorf("got %q after Close, want no files", left)
		}
	})
	return r
}

// tempFiles lists the files with secrets.
func tempFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.TempDir(), "vedette-secrets-*", "[^.]*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func mustResolve(t *testing.T, l *secret.Load, reference string) string {
	t.Helper()
	text, err := l.Resolve(reference)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDocumentsAreFetchedOnce resolves references to the same documents at the same time.
func TestDocumentsAreFetchedOnce(t *testing.T) {
	m := newMemory()
	r := newResolver(t, map[string]secret.Engine{"memory": m})
	synctest.Test(t, func(t *testing.T) {
		for range 2 { // the second load uses the documents of the first
			l := r.Load(t.Context())
			began := time.Now()
			l.Prefetch([]string{"encrypted:memory!d:a!k:x", "encrypted:memory!d:a!k:y", "encrypted:memory!d:b!k:x", "encrypted:memory!d:a!k:x", "nonsense"})
			for reference, want := range map[string]string{"encrypted:memory!d:a!k:x": "secret-ax", "encrypted:memory!d:a!k:y": "secret-ay",
				"encrypted:memory!d:b!k:x": "secret-bx", "encrypted:noop!it!self": "it!self"} {
				if got := mustResolve(t, l, reference); got != want {
					t.Errorf("%s: got %q, want %q", reference, got, want)
				}
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("took %v, want the documents at the same time", took)
			}
		}
	})
	if m.fetches != 2 {
		t.Errorf("got %d fetches, want 2", m.fetches)
	}
}

func TestErrorsNameTheReference(t *testing.T) {
	r := newResolver(t, map[string]secret.Engine{"memory": newMemory()})
	synctest.Test(t, func(t *testing.T) {
		l := r.Load(t.Context())
		for reference, want := range map[string]string{
			"encrypted:memory!d:c!k:x":  "encrypted:memory!d:c!k:x: memory has no document c",
			"encrypted:memory!d:a!k:z":  `encrypted:memory!d:a!k:z: the secret has no key "z"`,
			"encrypted:memory!d:a":      "encrypted:memory!d:a lacks the parameter k: write it as encrypted:memory!d:…!k:…",
			"encrypted:azure!d:a":       "encrypted:azure!d:a: there is no such engine: use one of memory, noop",
			"encrypted:":                "encrypted:*** names no engine: write it as encrypted:ENGINE!KEY:VALUE",
			"encrypted:Hunter2 secret!": "encrypted:***: there is no such engine: use one of memory, noop",
		} {
			if _, err := l.Resolve(reference); err == nil || err.Error() != want {
				t.Errorf("%s: got error %v, want %s", reference, err, want)
			}
		}
	})
}

// TestEngineComesBack checks that an engine that is down at first is asked again.
func TestEngineComesBack(t *testing.T) {
	m := newMemory()
	m.down = true
	r := newResolver(t, map[string]secret.Engine{"memory": m})
	synctest.Test(t, func(t *testing.T) {
		time.AfterFunc(12*time.Second, func() { m.setDown(false) })
		if got := mustResolve(t, r.Load(t.Context()), "encrypted:memory!d:a!k:x"); got != "secret-ax" {
			t.Errorf("got %q", got)
		}
	})
}

// TestEngineThatStaysDown checks that the time for all references together is bounded, and that
// other engines are not affected.
func TestEngineThatStaysDown(t *testing.T) {
	for name, broken := range map[string]*memory{"down": {down: true}, "hangs": {hangs: true}} {
		r := newResolver(t, map[string]secret.Engine{"broken": broken, "memory": newMemory()})
		synctest.Test(t, func(t *testing.T) {
			references := []string{"encrypted:memory!d:a!k:x"}
			for i := range 500 {
				references = append(references, fmt.Sprintf("encrypted:broken!d:%d!k:x", i))
			}
			l := r.Load(t.Context())
			began := time.Now()
			l.Prefetch(references)
			if got := mustResolve(t, l, references[0]); got != "secret-ax" {
				t.Errorf("%s: got %q", name, got)
			}
			for _, reference := range references[1:] {
				if _, err := l.Resolve(reference); vedette.KindOf(err) != vedette.Unavailable || !strings.HasPrefix(err.Error(), reference+": memory ") {
					t.Fatalf("%s: got error %v, want one that names %s", name, err, reference)
				}
			}
			if took := time.Since(began); took > 45*time.Second {
				t.Errorf("%s: took %v, want about 30 s", name, took)
			}
			// A reference that is found late is still tried.
			if got := mustResolve(t, l, "encrypted:memory!d:b!k:x"); got != "secret-bx" {
				t.Errorf("%s: got %q", name, got)
			}
		})
	}
}

func TestCancelledLoadEndsWithItsCause(t *testing.T) {
	r := newResolver(t, map[string]secret.Engine{"memory": &memory{down: true}})
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(stopped) })
		if _, err := r.Load(ctx).Resolve("encrypted:memory!d:a!k:x"); !errors.Is(err, stopped) {
			t.Errorf("got error %v, want that the load was stopped", err)
		}
	})
}

func TestSecretFilesArePrivateAndRemoved(t *testing.T) {
	m := newMemory()
	r := newResolver(t, map[string]secret.Engine{"memory": m})
	synctest.Test(t, func(t *testing.T) { testFiles(t, m, r) })
}

func testFiles(t *testing.T, m *memory, r *secret.Resolver) {
	l := r.Load(t.Context())
	path := mustResolve(t, l, "encryptedFile:memory!d:a!k:x")
	other := mustResolve(t, l, "encryptedFile:memory!d:a!k:y")
	if path == other || path != mustResolve(t, l, "encryptedFile:memory!d:a!k:x") || path != mustResolve(t, r.Load(t.Context()), "encryptedFile:memory!d:a!k:x") {
		t.Errorf("got the paths %s and %s, want one for each reference", path, other)
	}
	expectFile(t, path, "secret-ax")
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: got mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	m.set("a", `{"x": "secret-new", "y": "secret-ay"}`)
	if changed, err := r.Refresh(t.Context()); err != nil || !slices.Equal(changed, []string{"encryptedFile:memory!d:a!k:x"}) {
		t.Errorf("got %q, %v", changed, err)
	}
	expectFile(t, path, "secret-new")
	expectFile(t, other, "secret-ay")

	// A load without the second reference takes effect.
	l = r.Load(t.Context())
	mustResolve(t, l, "encryptedFile:memory!d:a!k:x")
	if err := l.Keep(); err != nil {
		t.Fatal(err)
	}
	if left := tempFiles(t); !slices.Equal(left, []string{path}) {
		t.Errorf("got the files %q, want %s only", left, path)
	}
}

func expectFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestRefreshKeepsWhatItCannotFetch checks that it tells what has changed, and keeps what it cannot fetch.
func TestRefreshKeepsWhatItCannotFetch(t *testing.T) {
	m := newMemory()
	r := newResolver(t, map[string]secret.Engine{"memory": m})
	synctest.Test(t, func(t *testing.T) {
		l := r.Load(t.Context())
		for _, reference := range []string{"encrypted:memory!d:a!k:x", "encrypted:memory!d:a!k:y", "encrypted:memory!d:b!k:x", "encrypted:noop!z"} {
			mustResolve(t, l, reference)
		}
		steps := []struct {
			name   string
			change func()
			want   []string
			err    string
		}{
			{"nothing", func() {}, nil, ""},
			{"one value of two", func() { m.set("a", `{"x":"new","y":"secret-ay"}`) }, []string{"encrypted:memory!d:a!k:x"}, ""},
			{"a value is gone", func() { m.set("a", `{"x":"newer"}`) }, []string{"encrypted:memory!d:a!k:x"}, `encrypted:memory!d:a!k:y: the secret has no key "y"`},
			{"the engine is down", func() { m.setDown(true) }, nil, "encrypted:memory!d:b!k:x: memory is down"},
			{"it comes back", func() { m.setDown(false); m.set("a", `{"x":"newer","y":"back"}`) }, []string{"encrypted:memory!d:a!k:y"}, ""},
		}
		for _, step := range steps {
			step.change()
			changed, err := r.Refresh(t.Context())
			if !slices.Equal(changed, step.want) || (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
				t.Errorf("%s: got %q, %v, want %q, error %q", step.name, changed, err, step.want, step.err)
			}
		}
		before := m.fetches
		l = r.Load(t.Context())
		if mustResolve(t, l, "encrypted:memory!d:a!k:x") != "newer" || mustResolve(t, l, "encrypted:memory!d:a!k:y") != "back" || m.fetches != before {
			t.Error("want a new load to use the documents of the last refresh")
		}
	})
}

// TestMissingSecretsAreFetchedLater checks that what an engine that was down did not give is found when it is
// back, and that it is not searched anymore when the configuration does not need it.
func TestMissingSecretsAreFetchedLater(t *testing.T) {
	m := newMemory()
	r := newResolver(t, map[string]secret.Engine{"memory": m})
	synctest.Test(t, func(t *testing.T) {
		const value, file = "encrypted:memory!d:a!k:x", "encryptedFile:memory!d:new!k:x"
		m.setDown(true)
		l := r.Load(t.Context())
		for _, reference := range []string{value, file} {
			if _, err := l.Resolve(reference); err == nil {
				t.Fatalf("%s: got no error from an engine that is down", reference)
			}
		}
		if err := l.Keep(); err != nil {
			t.Fatal(err)
		}
		if changed, err := r.Refresh(t.Context()); len(changed) > 0 || err == nil {
			t.Errorf("engine down: got %q, %v, want an error", changed, err)
		}
		m.setDown(false)
		if changed, err := r.Refresh(t.Context()); !slices.Equal(changed, []string{value}) || err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("engine back: got %q, %v, want %s found and %s missing", changed, err, value, file)
		}
		m.set("new", `{"x":""}`)
		if changed, err := r.Refresh(t.Context()); !slices.Equal(changed, []string{file}) || err != nil {
			t.Errorf("new secret: got %q, %v, want %s found", changed, err, file)
		}
		if changed, err := r.Refresh(t.Context()); len(changed) > 0 || err != nil {
			t.Errorf("nothing new: got %q, %v", changed, err)
		}
		if _, err := r.Load(t.Context()).Resolve("encrypted:memory!d:other!k:x"); err == nil {
			t.Error("got no error for a document that does not exist")
		}
		mustResolve(t, r.Load(t.Context()), value) // the next configuration does not need it
		if changed, err := r.Refresh(t.Context()); len(changed) > 0 || err != nil {
			t.Errorf("not needed: got %q, %v, want no attempt", changed, err)
		}
	})
}

// TestRefreshDuringClose checks that a refresh that is under way writes no file after Close.
func TestRefreshDuringClose(t *testing.T) {
	m := newMemory()
	r := newResolver(t, map[string]secret.Engine{"memory": m})
	synctest.Test(t, func(t *testing.T) {
		mustResolve(t, r.Load(t.Context()), "encryptedFile:memory!d:a!k:x")
		refreshed := make(chan error)
		go func() {
			_, err := r.Refresh(t.Context())
			refreshed <- err
		}()
		synctest.Wait() // the engine has not answered yet
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := <-refreshed; err == nil || !strings.Contains(err.Error(), "no longer in effect") {
			t.Errorf("got error %v, want that the configuration is no longer in effect", err)
		}
		if left := tempFiles(t); len(left) > 0 {
			t.Errorf("got %q after Close, want no files", left)
		}
	})
}

func TestCloseEndsEngines(t *testing.T) {
	m := newMemory()
	if err := secret.New(map[string]secret.Engine{"memory": m, "noop": secret.Noop{}}, secret.Timing{}).Close(); err != nil || !m.closed {
		t.Errorf("got %v, closed %v", err, m.closed)
	}
}

// TestAbandonedFilesAreRemoved checks that files of a process that was killed are removed, and those of a
// live one are not.
func TestAbandonedFilesAreRemoved(t *testing.T) {
	live := newResolver(t, map[string]secret.Engine{})
	path := mustResolve(t, live.Load(t.Context()), "encryptedFile:noop!hunter2")
	abandoned := filepath.Join(os.TempDir(), "vedette-secrets-abandoned")
	if err := os.MkdirAll(abandoned, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".lock", "secret"} {
		if err := os.WriteFile(filepath.Join(abandoned, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := secret.New(map[string]secret.Engine{"noop": secret.Noop{}}, secret.Timing{})
	second := mustResolve(t, other.Load(t.Context()), "encryptedFile:noop!hunter3")
	if left := tempFiles(t); len(left) != 2 || !slices.Contains(left, path) || !slices.Contains(left, second) {
		t.Errorf("got the files %q, want %q and %q", left, path, second)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}
