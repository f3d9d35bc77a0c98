package node

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSlowVolume runs the server on a disk that becomes slow, and then hardly writes at all, while a client runs operations.
func TestSlowVolume(t *testing.T) {
	c := newCluster(t, "slow")
	c.createConfigMap(c.namespace, "fixed")
	disk := c.loopDisk()
	c.volume(serverClaim, disk)
	c.install("vedette", "agent.account.name=prod", "agent.rbac.kinds={Namespace,ConfigMap}")
	server := "http://" + c.service("spin-clouddriver-vedette")
	c.await("the account is Ready", func() error { return c.accountIsReady("prod", "--server", server) })
	for _, limit := range []struct {
		name, file, value string
		check             func(c *cluster, l *load)
	}{
		{"slow", "blkio.throttle.write_iops_device", "1", func(c *cluster, l *load) {
			operations := l.operationCount()
			c.await("operations go on", func() error {
				if n := l.operationCount(); n < operations+3 {
					return fmt.Errorf("%d operations, and %d before", n, operations)
				}
				return nil
			})
		}},
		// A page takes a second.
		{"stands still", "blkio.throttle.write_bps_device", "4096", func(c *cluster, l *load) {
			c.await("the account says what it waits for", func() error {
				if out := c.vedette("accounts", "--server", server); !strings.Contains(out, "wait for the database") {
					return errors.New(out)
				}
				return nil
			})
			c.await("the log names the database", func() error {
				return c.says("locks of other programs\" database=/var/lib/vedette/vedette.db")
			})
			answers := l.count()
			c.await("reads are answered", func() error {
				if n := l.count(); n < answers+10 {
					return fmt.Errorf("%d answers, and %d before", n, answers)
				}
				return nil
			})
		}},
	} {
		t.Run(limit.name, func(t *testing.T) {
			c := c.in(t)
			l := startLoad(t, &load{base: server, account: "prod", namespace: c.namespace, prefix: strings.ReplaceAll(limit.name, " ", "-"), path: "/manifests/prod/" + c.namespace + "/configMap%20fixed",
				refusals: []string{"so late that the server did not begin it", "so nothing was done"}, wrong: func(status int, body string) error {
					if status != http.StatusOK || !strings.Contains(body, "value") {
						return errors.New("the object is there, and has not changed")
					}
					return nil
				}})
			c.await("the load runs", l.hasRun)
			before := c.pods(serverPods)[0]
			end := c.limitWrites(before, disk, limit.file, limit.value)
			limit.check(c, l)
			end()
			c.await("the account is Ready", func() error { return c.accountIsReady("prod", "--server", server) })
			c.finish(l)
			if after := c.pods(serverPods)[0]; after.Metadata.UID != before.Metadata.UID || after.Status.ContainerStatuses[0].RestartCount > 0 {
				t.Errorf("got the Pod %+v, want the server that ran before", after)
			}
		})
	}
	c.helm("uninstall", "vedette", "--wait")
}

// operationCount returns how many operations were accepted.
func (l *load) operationCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.operations)
}

// loopDisk returns a directory on a disk of its own.
func (c *cluster) loopDisk() string {
	c.t.Helper()
	dir := c.disk("server")
	file := filepath.Join(filepath.Dir(dir), "disk")
	for _, command := range [][]string{{"truncate", "-s", "256M", file}, {"mkfs.ext4", "-q", "-F", file}, {"mount", "-o", "loop", file, dir}} {
		if out, err := exec.CommandContext(c.ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			c.t.Fatalf("%v: %v: %s", command, err, out)
		}
	}
	return dir
}

// limitWrites limits what the container of a Pod writes to the disk of a directory, until the function is called that it returns. The
// kernel delays writes, and refuses none.
func (c *cluster) limitWrites(p podObject, dir, file, value string) (end func()) {
	c.t.Helper()
	var info unix.Stat_t
	if err := unix.Stat(dir, &info); err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.controlGroup(p, "blkio"), file)
	set := func(value string) {
		if err := os.WriteFile(path, fmt.Appendf(nil, "%d:%d %s", unix.Major(info.Dev), unix.Minor(info.Dev), value), 0o600); err != nil {
			c.t.Error(err)
		}
	}
	set(value)
	c.t.Cleanup(func() {
		_ = os.WriteFile(path, fmt.Appendf(nil, "%d:%d 0", unix.Major(info.Dev), unix.Minor(info.Dev)), 0o600)
	}) // also if the test fails
	return func() { set("0") }
}
