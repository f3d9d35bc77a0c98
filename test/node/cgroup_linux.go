package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cgroupRoot is where the kernel's control groups are.
const cgroupRoot = "/sys/fs/cgroup"

// createCgroups creates a control group in each hierarchy, for all containers of the node. A new group of cpuset has no processors
// and no memory until it is given some.
func createCgroups(name string) error {
	roots, err := filepath.Glob(filepath.Join(cgroupRoot, "*"))
	if err != nil {
		return fmt.Errorf("find the control groups: %w", err)
	}
	for _, root := range roots {
		group := filepath.Join(root, name)
		if err := os.Mkdir(group, 0o755); err != nil {
			return fmt.Errorf("create a control group: %w", err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(root, file))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read a control group: %w", err)
			}
			if err := os.WriteFile(filepath.Join(group, file), content, 0o600); err != nil {
				return fmt.Errorf("write a control group: %w", err)
			}
		}
	}
	return nil
}

// removeCgroups removes the control groups of a name, with all below them, once their processes have ended.
func removeCgroups(name string, timeout time.Duration) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left := removeEmptyCgroups(name)
		if len(left) == 0 {
			return nil
		}
		if time.Since(began) >= timeout {
			return fmt.Errorf("remove the control groups %s: they still have processes", strings.Join(left, ", "))
		}
	}
}

// removeEmptyCgroups returns the groups that it could not remove.
func removeEmptyCgroups(name string) (left []string) {
	roots, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", name))
	for _, root := range roots {
		var groups []string
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil // a group that ends meanwhile needs no removal
		})
		for _, group := range slices.Backward(groups) {
			if err := os.Remove(group); err != nil && !errors.Is(err, os.ErrNotExist) {
				left = append(left, group)
			}
		}
	}
	return left
}
