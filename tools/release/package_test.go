package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestPackagesInstallAndRemove installs the packages of each format on a copy of this machine's system, and removes them. The copy is an
// overlay in a mount namespace, so that nothing of the machine changes.
func TestPackagesInstallAndRemove(t *testing.T) {
	for format, manager := range map[string]string{"deb": "dpkg", "rpm": "rpm"} {
		t.Run(format, func(t *testing.T) { installAndRemove(t, format, manager) })
	}
}

func installAndRemove(t *testing.T, format, manager string) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root on Linux can make an overlay")
	}
	for _, program := range []string{manager, "systemd-sysusers", "systemd-tmpfiles", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("scripts/test-packages.sh installs it on Debian: %v", err)
		}
	}
	const overlay = `d=$(mktemp -d) && mount -t tmpfs tmpfs $d && cd $d && mkdir up work root && mount -t overlay overlay -o lowerdir=/,upperdir=up,workdir=work root`
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", overlay).CombinedOutput(); err != nil {
		t.Skipf("this machine allows no overlay: %v: %s", err, out)
	}
	r := built(t)
	packages, err := filepath.Glob(filepath.Join(r.dir, "*."+format))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != len(programs) {
		t.Fatalf("got %d packages, want one for each of %d programs", len(packages), len(programs))
	}
	out := command(t, "unshare", append([]string{"--mount", "sh", "testdata/overlay.sh", "testdata/" + format + ".sh", "testdata/use.sh"}, packages...)...)
	t.Log(out)
}
