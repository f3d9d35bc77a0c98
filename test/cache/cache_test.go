package cache_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette/test/cache"
)

func TestCacheOfTheVariable(t *testing.T) {
	base := t.TempDir()
	t.Setenv("VEDETTE_CACHE", base)
	dir, err := cache.Dir("programs")
	if err != nil || dir != filepath.Join(base, "programs") {
		t.Fatalf("got %q, %v", dir, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Errorf("the directory was not created: %v", err)
	}
	t.Setenv("VEDETTE_CACHE", "relative")
	if dir, err := cache.Dir("programs"); err == nil {
		t.Errorf("got %q for a relative path, want an error", dir)
	}
}
