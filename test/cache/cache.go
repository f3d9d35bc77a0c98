// Package cache has the directory in which programs that tests run are kept after they were built once.
package cache

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns the directory for programs of one sort, and creates it: vedette/NAME in os.UserCacheDir, or NAME in the directory
// VEDETTE_CACHE.
func Dir(name string) (string, error) {
	base := os.Getenv("VEDETTE_CACHE")
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a cache directory: %w: set VEDETTE_CACHE to one", err)
		}
		base = filepath.Join(user, "vedette")
	}
	if !filepath.IsAbs(base) { // each package's tests run in another working directory
		return "", fmt.Errorf("use %s as cache: VEDETTE_CACHE must be an absolute path", base)
	}
	dir := filepath.Join(base, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create the cache directory: %w", err)
	}
	return dir, nil
}
