package node

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/node"
)

// TestDatabases moves the server to a database by the commands of docs/installation.md and docs/databases.md, and takes the database
// away from it.
func TestDatabases(t *testing.T) {
	for _, db := range []struct {
		name, create, refused string
		start                 func(testing.TB, databases.Options) *databases.Server
		settings              []string
	}{
		{name: "postgres", create: "-- PostgreSQL", refused: "password authentication failed", start: databases.StartPostgreSQL,
			settings: []string{"listen_addresses=*", "hba_file=" + passwordFile(t)}},
		{name: "mysql", create: "-- MySQL and MariaDB", refused: "Access denied", start: databases.StartMariaDB, settings: []string{"bind-address=0.0.0.0"}},
	} {
		t.Run(db.name, func(t *testing.T) {
			c := newCluster(t, db.name) // before the database, so that it is in the namespaces of the node
			server := db.start(t, databases.Options{Settings: db.settings})
			// The test's own user already has the page's name.
			rename := strings.NewReplacer("vedette", "chart")
			for statement := range strings.SplitSeq(rename.Replace(block(t, "databases.md", db.create)), ";\n") {
				if statement != "" {
					if err := databases.Exec(server.URL, statement); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.useDatabase(db.name, server, db.refused)
		})
	}
}

// passwordFile returns rules by which PostgreSQL asks the user of the page for a password.
func passwordFile(t *testing.T) string {
	t.Helper()
	file, err := os.CreateTemp("", "vedette-hba-") //nolint:usetesting // the database's user must be able to read it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file.Name()) })
	_, err = file.WriteString("host chart all all scram-sha-256\nhost all all 127.0.0.1/32 trust\n")
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func (c *cluster) useDatabase(scheme string, database *databases.Server, refused string) {
	c.t.Helper()
	c.createConfigMap(c.namespace, "settings")
	c.volume(serverClaim, c.disk("server"))
	c.install("vedette", "agent.account.name=prod", "agent.rbac.kinds={Namespace,ConfigMap}")
	server := "http://" + c.service("spin-clouddriver-vedette")
	accountIsReady := func() error { return c.accountIsReady("prod", "--server", server) }
	operate := func(value string) {
		c.t.Helper()
		c.vedette("annotate", "configmap", "settings", "turn="+value, "--overwrite", "-n", c.namespace, "--account", "prod", "--server", server)
	}
	hasOperations := func(want int) error {
		out, err := c.tryVedette("ops", "--verb", "patch", "--server", server)
		if err == nil && strings.Count(out, "configmap "+c.namespace+"/settings") != want {
			err = fmt.Errorf("got\n%s\nwant %d operations", out, want)
		}
		return err
	}
	c.await("the account is Ready", accountIsReady)

	address, err := url.Parse(database.URL)
	if err != nil {
		c.t.Fatal(err)
	}
	right := fmt.Sprintf("%s://chart@%s:%s/chart", scheme, node.Address, address.Port())
	commands := strings.ReplaceAll(block(c.t, "installation.md", "kubectl -n spinnaker create secret generic vedette-database"),
		"postgres://vedette@db.example.com:5432/vedette", right)
	c.bash(root, strings.ReplaceAll(commands, "…", "wrong"))
	c.await("the Pod says that the password is wrong", func() error { return c.says(refused) })
	c.kubectl("delete", "secret", "vedette-database")
	c.kubectl("create", "secret", "generic", "vedette-database", "--from-literal=password=secret")
	c.await("the account is Ready", accountIsReady)
	operate("first")

	c.kubectl("delete", "pod", "spin-clouddriver-vedette-0")
	c.await("the account is Ready", accountIsReady)
	c.await("the history is there", func() error { return hasOperations(1) })

	before := c.pods(serverPods)[0]
	database.Stop()
	c.await("the server is not ready", c.serverIsNotReady)
	c.await("the Pod says that the database does not answer", func() error { return c.says("server does not answer") })
	database.Start()
	c.await("the account is Ready", accountIsReady)
	if after := c.pods(serverPods)[0]; after.Metadata.UID != before.Metadata.UID || after.Status.ContainerStatuses[0].RestartCount != before.Status.ContainerStatuses[0].RestartCount {
		c.t.Errorf("got the Pod %+v, want the one from before the outage, which was not started again", after)
	}
	operate("second")

	database.Stop()
	c.kubectl("delete", "pod", "spin-clouddriver-vedette-0")
	c.await("the new Pod says that the database does not answer", func() error { return c.says("retrying: database does not answer") })
	database.Start()
	c.await("the account is Ready", accountIsReady)
	c.await("the history is there", func() error { return hasOperations(2) })

	// A StatefulSet waits for a Pod that is not ready before it replaces it, also if that never will be.
	c.helm("upgrade", "vedette", chart, "--reuse-values", "--set", "server.database.url="+strings.Replace(right, ":"+address.Port(), ":1", 1))
	c.await("the Pod says that the database does not answer", func() error { return c.says(node.Address.String() + ":1: connect: connection refused") })
	c.helm("upgrade", "vedette", chart, "--reuse-values", "--set", "server.database.url="+right)
	c.kubectl("delete", "pod", "spin-clouddriver-vedette-0")
	c.await("the account is Ready", accountIsReady)
	c.helm("uninstall", "vedette", "--wait")
}

func (c *cluster) serverIsNotReady() error {
	if len(c.ready(serverPods)) > 0 {
		return errors.New("the server is ready")
	}
	return nil
}
