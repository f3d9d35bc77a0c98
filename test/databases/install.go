package databases

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

var install = sync.OnceValue(func() error { return runInstaller() })

// installSeveralMachines also installs what databases of several machines need.
var installSeveralMachines = sync.OnceValue(func() error { return runInstaller("several-machines") })

func runInstaller(args ...string) error {
	_, file, _, _ := runtime.Caller(0)
	script := filepath.Join(filepath.Dir(file), "../../scripts/test-databases.sh")
	if out, err := exec.Command(script, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

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

// findForSeveralMachines is find for a program or library that only databases of several machines need.
func findForSeveralMachines(patterns ...string) (string, error) {
	if path := firstExisting(patterns); path != "" {
		return path, nil
	}
	err := installSeveralMachines()
	if path := firstExisting(patterns); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("none of %v is installed: run `scripts/test-databases.sh several-machines` as root on Debian: %w", patterns, err)
}

func firstExisting(patterns []string) string {
	for _, pattern := range patterns {
		if paths, _ := filepath.Glob(pattern); len(paths) > 0 { // fails only for a malformed pattern
			return paths[len(paths)-1]
		}
	}
	return ""
}
