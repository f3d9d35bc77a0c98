package node

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpgrade goes from the version before to this one and back, while a client runs operations and another one reads.
func TestUpgrade(t *testing.T) {
	c := newCluster(t, "upgrade")
	c.create("/api/v1/namespaces/upgrade/configmaps", object{"metadata": object{"name": "fixed"}, "data": object{"value": "does not change"}})
	c.volume(serverClaim, c.disk("server"))
	// ConfigMaps are watched, so that reads are of what is stored.
	settings := []string{"agent.account.name=prod", "agent.replicas=2", "agent.rbac.kinds={Namespace,Pod,ConfigMap}"}
	c.install("vedette", append(settings, "image.tag="+oldVersion)...)
	base := "http://" + c.service("spin-clouddriver-vedette")
	c.await("the account is Ready", func() error { return c.accountIsReady("prod", "--server", base) })
	for _, step := range []struct{ name, version string }{{"upgrade", newVersion}, {"downgrade", oldVersion}, {"upgrade again", newVersion}} {
		t.Run(step.name, func(t *testing.T) {
			l := startLoad(t, &load{base: base, account: "prod", namespace: c.namespace, prefix: strings.ReplaceAll(step.name, " ", "-"),
				path: "/manifests/prod/upgrade/configMap%20fixed", wrong: func(status int, body string) error {
					if status != http.StatusOK || !strings.Contains(body, "does not change") {
						return errors.New("the object is there, and has not changed")
					}
					return nil
				}})
			c.await("the load runs", l.hasRun)
			c.helm(append([]string{"upgrade", "vedette", chart, "--wait", "--timeout", timeout.String()}, values(append(settings, "image.tag="+step.version))...)...)
			c.await("the account is Ready", func() error { return c.accountIsReady("prod", "--server", base) })
			c.finish(l)
			if out := c.kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}"); strings.Count(out, ":"+step.version) != 3 {
				t.Errorf("got the images %s, want three of %s", out, step.version)
			}
		})
	}
	c.helm("uninstall", "vedette", "--wait")
}

// finish lets a load run on for a while, so that it sees the end of an interruption, and checks it.
func (c *cluster) finish(l *load) {
	c.t.Helper()
	answered := l.count()
	c.await("the load runs on", func() error {
		if l.count() < answered+10 {
			return errors.New("it has not run on")
		}
		return nil
	})
	l.end().check(c)
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers
}

// hasRun fails unless reads and operations were answered.
func (l *load) hasRun() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers < 10 || l.account != "" && len(l.operations) < 3 {
		return fmt.Errorf("%d answers, %d operations, no answers: %v, problems: %v", l.answers, len(l.operations), l.unanswered, l.problems)
	}
	return nil
}

// TestFront puts the server in front of a Clouddriver that is there already, and back, while a reader uses the Service.
func TestFront(t *testing.T) {
	c := newCluster(t, "front")
	const theirs = `[{"name":"legacy","type":"kubernetes"}]`
	c.pod("clouddriver", object{"app": "spin", "cluster": "spin-clouddriver"}, "serve", "7002", theirs)
	c.create("/api/v1/namespaces/front/services", object{"metadata": object{"name": "spin-clouddriver"}, "spec": object{
		"selector": object{"app": "spin", "cluster": "spin-clouddriver"}, "ports": []object{{"name": "http", "port": 7002, "targetPort": 7002}}}})
	c.volume(serverClaim, c.disk("server"))
	c.install("vedette", "agent.account.name=prod")
	own := "http://" + c.service("spin-clouddriver-vedette")
	c.await("the account is Ready", func() error { return c.accountIsReady("prod", "--server", own) })

	service := "http://" + c.service("spin-clouddriver")
	newReader := func(t *testing.T) *load {
		return startLoad(t, &load{base: service, path: "/credentials", wrong: func(status int, body string) error {
			if status != http.StatusOK || !strings.Contains(body, `"legacy"`) {
				return errors.New("Clouddriver's account exists all the time")
			}
			return nil
		}})
	}
	shows := func(text string, want bool) func() error {
		return func() error {
			status, body := (&load{base: service}).request(c.ctx, http.MethodGet, "/credentials", "")
			if status != http.StatusOK || strings.Contains(body, text) != want {
				return fmt.Errorf("got %d %s", status, body)
			}
			return nil
		}
	}
	t.Run("front", func(t *testing.T) {
		c := c.in(t)
		l := newReader(t)
		c.await("the load runs", l.hasRun)
		// The commands of docs/installation.md.
		if err := os.WriteFile(filepath.Join(t.TempDir(), "spin-clouddriver.yml"), []byte(c.kubectl("get", "service", "spin-clouddriver", "-o", "yaml")), 0o600); err != nil {
			t.Fatal(err)
		}
		c.kubectl("annotate", "service", "spin-clouddriver", "meta.helm.sh/release-name=vedette", "meta.helm.sh/release-namespace=front")
		c.kubectl("label", "service", "spin-clouddriver", "app.kubernetes.io/managed-by=Helm")
		c.helm("upgrade", "vedette", chart, "--reuse-values", "--set", "server.clouddriver.mode=front", "--force-conflicts", "--wait", "--timeout", timeout.String())
		c.await("the Service shows both", shows(`"prod"`, true))
		c.finish(l)
	})
	t.Run("back", func(t *testing.T) {
		c := c.in(t)
		l := newReader(t)
		c.await("the load runs", l.hasRun)
		c.kubectl("patch", "service", "spin-clouddriver", "--type", "merge", "-p", `{"spec":{"selector":{"app.kubernetes.io/name":null,`+
			`"app.kubernetes.io/instance":null,"app.kubernetes.io/component":null,"vedette.io/clouddriver":null,"app":"spin","cluster":"spin-clouddriver"}}}`)
		c.helm("upgrade", "vedette", chart, "--reuse-values", "--set", "server.clouddriver.mode=none", "--wait", "--timeout", timeout.String())
		c.await("the Service shows Clouddriver's accounts only", shows(`"prod"`, false))
		c.finish(l)
	})
}
