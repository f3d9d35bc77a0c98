package beside

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/programs"
)

var freezeFor = flag.Duration("freeze", 3*time.Second, "how long the upstream Clouddriver is frozen in each step; from 10s on, everything else takes longer too")

// isLong reports whether tests may take many minutes.
func isLong() bool { return *freezeFor >= 10*time.Second }

// programDir has the programs under test.
var programDir string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "vedette-beside-")
	if err == nil {
		defer os.RemoveAll(dir)
		programDir = dir
		err = programs.Build(context.Background(), dir, "vedette-agent", "vedette-server")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Readers keep their connections, as Spinnaker's services do.
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 100
	return m.Run()
}

func program(name string) string { return filepath.Join(programDir, name) }

func freePort(t testing.TB) int {
	t.Helper()
	port, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// await polls until a function returns no error.
func await(t testing.TB, timeout time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || last == nil { // the end of ctx says nothing about what is awaited
			last = err
		}
		if !sleep(ctx, 50*time.Millisecond) {
			t.Fatalf("waited %v until %s: %v", timeout, what, last)
		}
	}
}

// sleep waits, and reports false if the context ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
