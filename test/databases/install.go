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

// find returns the path of a server's program. If the program is missing, find tries to install the
// servers.
func find(variable string, patterns ...string) (string, error) {
	if path := newestExecutable(patterns); path != "" {
		return path, nil
	}
	err := install()
	if path := newestExecutable(patterns); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("no database server at %v: install it with scripts/test-databases.sh, or set %s to the URL of a server that tests may write to: %w", patterns, variable, err)
}

func newestExecutable(patterns []string) string {
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(pattern) // fails only for a malformed pattern
		for i := len(paths) - 1; i >= 0; i-- {
			if info, err := os.Stat(paths[i]); err == nil && info.Mode()&0o111 != 0 {
				return paths[i]
			}
		}
	}
	return ""
}
