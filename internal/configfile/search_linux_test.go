package configfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestUnreadableDirectoriesArePassedOver checks that directories of other users are passed over.
func TestUnreadableDirectoriesArePassedOver(t *testing.T) {
	dir := writeFiles(t, map[string]string{"root/config/a.yml": "name: x", "open/a.yml": "name: y"})
	hidden := filepath.Join(dir, "root")
	if os.Getuid() == 0 {
		leaveToNobody(t, filepath.Dir(dir))
	}
	if err := os.Chmod(hidden, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(hidden, 0o755) })
	var s sample
	var r *Report
	withoutRoot(t, func() {
		if _, err := os.ReadDir(hidden); !os.IsPermission(err) {
			t.Errorf("read the hidden directory: got %v, want no permission", err)
		}
		r = load(Search{Places: []Place{{filepath.Join(hidden, "config"), "a"}, {filepath.Join(dir, "open"), "a"}}}, Options{}, &s)
	})
	if r.Err() != nil || s.Name != "y" {
		t.Errorf("got %q, %v; want y", s.Name, r.Err())
	}
}

const nobody = 65534

func leaveToNobody(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// withoutRoot calls do in a thread without root's access to all files. Tests often run as root, in
// containers.
func withoutRoot(t *testing.T, do func()) {
	if os.Getuid() != 0 {
		do()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine, because it keeps the other user
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}
