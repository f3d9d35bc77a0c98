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

// Programs whose clocks are wrong are built from the same sources with another
// standard library: its time.Now adds what a variable of the environment says.
// Programs that are preloaded with another libc, as is usual, would not notice:
// Go asks the kernel.
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

// overlay writes what replaces files of the standard library, and returns the
// flags that go build needs for it.
func overlay(dir string) ([]string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask go where it is: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return nil, err
	}
	modified := strings.Replace(string(text), "func Now() Time {\n"+runtimeNowLine, "func Now() Time {\n"+runtimeNowLine+"\tsec += skew\n", 1)
	if modified == string(text) {
		return nil, errors.New("time.Now has another form in this version of Go; find its clock anew")
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

// skewEnv returns the environment in which a program's clock is wrong: those of
// agents run ahead and behind in turn, the server's changes sides each time that
// it is started.
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
