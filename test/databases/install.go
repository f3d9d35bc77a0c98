package databases

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

var install = sync.OnceValue(func() error {
	_, file, _, _ := runtime.Caller(0)
	script := filepath.Join(filepath.Dir(file), "../../scripts/test-databases.sh")
	if out, err := exec.Command(script).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// find returns a program of a server, and installs the servers where it is
// missing and that can be done.
func find(variable string, patterns ...string) (string, error) {
	if path := newestExecutable(patterns); path != "" {
		return path, nil
	}
	err := install()
	if path := newestExecutable(patterns); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("no database server at %v: install it with scripts/test-databases.sh, or set %s to the URL of one that this test may fill: %w", patterns, variable, err)
}

func newestExecutable(patterns []string) string {
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(pattern) // only a malformed pattern fails
		for i := len(paths) - 1; i >= 0; i-- {
			if info, err := os.Stat(paths[i]); err == nil && info.Mode()&0o111 != 0 {
				return paths[i]
			}
		}
	}
	return ""
}
