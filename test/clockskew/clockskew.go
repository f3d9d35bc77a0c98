// Package clockskew makes the clocks of our programs wrong, in tests. Preloading another libc, as is usual, would have no effect, because Go
// asks the kernel. So the programs are built with a modified standard library: its time.Now adds to the wall clock what an environment
// variable says, or a file, which can change while the program runs. The monotonic clock stays right, as when somebody sets a clock.
package clockskew

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	variable     = "VEDETTE_TEST_CLOCK_SKEW" // seconds
	fileVariable = "VEDETTE_TEST_CLOCK_FILE" // path of a file of Clock

	skewedNow = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var (
	skew     = readSkew()
	skewFile = mapSkew()
)

func readSkew() int64 {
	text, _ := syscall.Getenv("` + variable + `")
	n, err := atoi(text)
	if err != nil {
		return 0
	}
	return int64(n)
}

// mapSkew maps the file into memory, so that a look costs nothing.
func mapSkew() *int64 {
	path, found := syscall.Getenv("` + fileVariable + `")
	if !found {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		panic("open the file of the clock's skew: " + err.Error())
	}
	data, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("map the file of the clock's skew: " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&data[0]))
}

func currentSkew() int64 {
	if skewFile == nil {
		return skew
	}
	return atomic.LoadInt64(skewFile)
}
`
	runtimeNowLine = "\tsec, nsec, mono := runtimeNow()\n"
)

// BuildFlags writes the replacements of standard library files into a directory, and returns the flags of go build for them.
func BuildFlags(dir string) ([]string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find GOROOT: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return nil, err
	}
	modified := strings.Replace(string(text), "func Now() Time {\n"+runtimeNowLine, "func Now() Time {\n"+runtimeNowLine+"\tsec += currentSkew()\n", 1)
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

// Env returns the environment that makes a program's clock wrong from its start on.
func Env(offset time.Duration) string { return fmt.Sprintf("%s=%d", variable, int64(offset.Seconds())) }

// Clock is the clock of one program, which can jump while it runs.
type Clock struct{ path string }

// NewClock creates a clock that is right, with a file in a directory.
func NewClock(dir, name string) (*Clock, error) {
	c := &Clock{filepath.Join(dir, name+".clock")}
	return c, os.WriteFile(c.path, make([]byte, 8), 0o600)
}

// Env returns the environment of the program.
func (c *Clock) Env() string { return fileVariable + "=" + c.path }

// Set makes the clock wrong by whole seconds.
func (c *Clock) Set(offset time.Duration) error {
	file, err := os.OpenFile(c.path, os.O_WRONLY, 0) // not truncated, because it is mapped
	if err != nil {
		return err
	}
	_, err = file.Write(binary.NativeEndian.AppendUint64(nil, uint64(int64(offset.Seconds()))))
	return errors.Join(err, file.Close())
}
