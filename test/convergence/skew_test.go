package convergence

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// To skew their clocks, programs are built with a modified standard library, whose time.Now adds
// the value of an environment variable. Preloading another libc, as is usual, would have no effect,
// because Go asks the kernel.
const (
	skewVariable = "VEDETTE_TEST_CLOCK_SKEW" // seconds

	skewedNow = `package time

import "syscall"

var skew = readSkew()

func readSkew() int64 {
	text, _ := syscall.Getenv("` + skewVariable + `")
	n, err := atoi(text)
	if err != nil {
		return 0
	}
	return int64(n)
}
`
	runtimeNowLine = "\tsec, nsec, mono := runtimeNow()\n"
)

// overlay writes the replacements of standard library files, and returns the flags of go build for
// them.
func overlay(dir string) ([]string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find GOROOT: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return nil, err
	}
	modified := strings.Replace(string(text), "func Now() Time {\n"+runtimeNowLine, "func Now() Time {\n"+runtimeNowLine+"\tsec += skew\n", 1)
	if modified == string(text) {
		return nil, errors.New("time.Now is different in this version of Go: adapt runtimeNowLine")
	}
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": modified, "skew.go": skewedNow} {
		path := filepath.Join(dir, name)
		replace[filepath.Join(source, name)] = path
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "overlay.json")
	return []string{"-overlay", path}, os.WriteFile(path, list, 0o600)
}

// skewEnv returns the environment that skews a program's clock. The clocks of agents are ahead and
// behind in turn; the server's changes direction at each start.
func skewEnv(offset time.Duration, name string, start int) string {
	ahead := start%2 == 0
	if strings.HasPrefix(name, "a") {
		ahead = name[len(name)-1]%2 == 0
	}
	if !ahead {
		offset = -offset
	}
	return fmt.Sprintf("%s=%d", skewVariable, int64(offset.Seconds()))
}
