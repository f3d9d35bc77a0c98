package convergence

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// disk is a directory that can be full.
type disk struct {
	t       *testing.T
	dir     string
	mounted bool // a small file system of its own, which only root can mount
}

const diskSize = 64 << 20

func newDisk(t *testing.T) *disk {
	d := &disk{t: t, dir: filepath.Join(t.TempDir(), "disk")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Log("not testing a full disk: mounting a small file system requires root")
		return d
	}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Logf("not testing a full disk: mount: %v", err)
		return d
	}
	d.mounted = true
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *disk) fillerFile() string { return filepath.Join(d.dir, "ballast") }

// fill fills the disk completely.
func (d *disk) fill() {
	f, err := os.Create(d.fillerFile())
	if err != nil {
		d.t.Error(err)
		return
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for size := 0; size < 2*diskSize; size += len(block) {
		if _, err := f.Write(block); err != nil {
			return // no space left, as intended
		}
	}
	d.t.Errorf("%s is still not full", d.dir)
}

func (d *disk) free() {
	if err := os.Remove(d.fillerFile()); err != nil {
		d.t.Error(err)
	}
}
