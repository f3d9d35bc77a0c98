package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBackup makes a backup and restores it by the commands of docs/backup.md.
func TestBackup(t *testing.T) {
	c := newCluster(t, "backup")
	c.create("/api/v1/namespaces", object{"metadata": object{"name": "backedup"}})
	for _, name := range []string{"before", "deleted", "changed"} {
		c.createConfigMap("backedup", name)
	}
	c.volume(serverClaim, c.disk("server"))
	c.install("vedette", "agent.account.name=prod", "agent.rbac.kinds={Namespace,ConfigMap}")
	server := "http://" + c.service("spin-clouddriver-vedette")
	back, restore := block(t, "backup.md", "kubectl -n spinnaker exec"), block(t, "backup.md", "kubectl -n spinnaker scale")
	dir := t.TempDir()
	operate := func(c *cluster, name, value string) {
		c.t.Helper()
		c.vedette("annotate", "configmap", name, "turn="+value, "--overwrite", "-n", "backedup", "--account", "prod", "--server", server)
	}
	// expect checks what is stored once the account is Ready by itself.
	expect := func(c *cluster, operations ...string) {
		c.t.Helper()
		c.await("the account is Ready", func() error { return c.accountIsReady("prod", "--server", server) })
		c.await("the store equals the cluster", func() error { return c.storeIsEqual("backedup", "--account", "prod", "--server", server) })
		var found []string
		for _, m := range regexp.MustCompile(`configmap backedup/(\S+)`).FindAllStringSubmatch(c.vedette("ops", "--verb", "patch", "--server", server), -1) {
			found = append(found, m[1])
		}
		if strings.Join(found, " ") != strings.Join(operations, " ") {
			c.t.Errorf("got operations on %q, want %q, the newest first", found, operations)
		}
	}
	expect(c)
	operate(c, "before", "1")
	t.Log(c.bash(dir, back))

	operate(c, "changed", "1")
	c.createConfigMap("backedup", "after")
	operate(c, "after", "1")
	c.kubectl("-n", "backedup", "delete", "configmap", "deleted")
	whole := filepath.Join(dir, "vedette.db")
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("while the server runs", func(t *testing.T) {
		c := c.in(t)
		before := c.pods(serverPods)[0]
		c.refuses(dir, regexp.MustCompile(`(?m)^.* (?:scale|wait --for=delete) .*\n`).ReplaceAllString(restore, ""), "another process uses the database file /var/lib/vedette/vedette.db")
		if after := c.pods(serverPods)[0]; after.Metadata.UID != before.Metadata.UID || after.Status.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("got the Pod %+v, want the server that ran before", after)
		}
		expect(c, "after", "changed", "before")
	})
	t.Run("half a file", func(t *testing.T) {
		c := c.in(t)
		half := t.TempDir()
		if err := os.WriteFile(filepath.Join(half, "vedette.db"), content[:len(content)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		c.refuses(half, restore, "it is damaged")
		expect(c, "after", "changed", "before")
	})
	t.Run("restore", func(t *testing.T) {
		c := c.in(t)
		if out := c.bash(dir, restore); !strings.Contains(out, fmt.Sprintf("restored /var/lib/vedette/vedette.db: %d bytes", len(content))) {
			t.Errorf("got\n%s", out)
		}
		expect(c, "before")
		operate(c, "before", "2")
		expect(c, "before", "before")
	})
	c.helm("uninstall", "vedette", "--wait")
}

// refuses runs a restore that must say why it is refused.
func (c *cluster) refuses(dir, restore, reason string) {
	c.t.Helper()
	out, err := c.tryBash(dir, restore)
	c.t.Logf("%s (%v)", out, err)
	if !strings.Contains(out, reason) {
		c.t.Errorf("got\n%s\nwant %q", out, reason)
	}
}

func (c *cluster) createConfigMap(namespace, name string) {
	c.t.Helper()
	c.create("/api/v1/namespaces/"+namespace+"/configmaps", object{"metadata": object{"name": name}, "data": object{"key": "value"}})
}

// storeIsEqual fails unless the server has the same versions of the same ConfigMaps as the cluster.
func (c *cluster) storeIsEqual(namespace string, flags ...string) error {
	want := versions(c.t, c.kubectl("-n", namespace, "get", "configmaps", "-o", "json"))
	out, err := c.tryVedette(append([]string{"get", "configmaps", "-n", namespace, "-o", "json"}, flags...)...)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(out, "{") {
		return fmt.Errorf("the server says more than the objects: %.200s", out) // that they are old
	}
	if got := versions(c.t, out); len(got) == 0 || !maps.Equal(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// versions returns uid and resourceVersion of objects by name.
func versions(t *testing.T, text string) map[string]string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, UID, ResourceVersion string }
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	found := map[string]string{}
	for _, item := range list.Items {
		found[item.Metadata.Name] = item.Metadata.UID + " " + item.Metadata.ResourceVersion
	}
	return found
}
