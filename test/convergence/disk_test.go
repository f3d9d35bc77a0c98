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
	mounted bool // a small file system of its own, which takes root
}

const diskSize = 64 << 20

func newDisk(t *testing.T) *disk {
	d := &disk{t: t, dir: filepath.Join(t.TempDir(), "disk")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Log("the full disk is left out: mounting a small file system takes root")
		return d
	}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Logf("the full disk is left out: mount: %v", err)
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

// fill leaves no byte free.
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
			return // no space left, as was the aim
		}
	}
	d.t.Errorf("%s does not fill up", d.dir)
}

func (d *disk) free() {
	if err := os.Remove(d.fillerFile()); err != nil {
		d.t.Error(err)
	}
}
