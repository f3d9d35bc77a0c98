package formerchart

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vedette-io/vedette/internal/configfile"
)

// kubeconfigs remembers accounts with kubeconfigs; finish converts them with their other settings.
func (c *converter) kubeconfigs(e entry) { c.clusters = c.entries(e) }

// accounts converts accounts: the one of the agent's own cluster, because the chart gives it rights; those of kubeconfigs; and leaves
// others in the configuration.
func (c *converter) accounts(config *yaml.Node) {
	list := get(config, "kubernetes.accounts")
	var others []*yaml.Node
	settingsOf, names := map[string]*yaml.Node{}, map[string]bool{}
	if list != nil {
		for i, account := range list.Content {
			name := ""
			if n := find(account, "name"); n != nil {
				name = n.Value
			}
			isOwn := isTrue(find(account, "serviceAccount"))
			contents := find(account, "kubeconfigContents")
			if contents != nil && !isReference(contents.Value) {
				remove(account, "kubeconfigContents")
			}
			switch {
			case name == "":
				c.problem(account, "config.kubernetes.accounts[%d] has no name", i)
			case names[name]:
				c.problem(account, "config.kubernetes.accounts[%d] has the name of another account", i)
			case isOwn && find(c.agent, "account") == nil: // a kubeconfig beside it has no effect
				c.ownAccount(account, name)
			case slices.ContainsFunc(c.clusters, func(e entry) bool { return e.key.Value == name }):
				settingsOf[name] = account
			case !isOwn && contents != nil && !isReference(contents.Value):
				remove(account, "kubeconfigFile")
				path := fmt.Sprintf("config.kubernetes.accounts[%d].kubeconfigContents", i)
				c.kubeconfig(name, c.kubeconfigSecret(account.Line, path, name, contents.Value), "", account)
			default:
				if file := find(account, "kubeconfigFile"); file != nil {
					c.note(account.Line, fmt.Sprintf("config.kubernetes.accounts[%d].kubeconfigFile", i),
						"is a file: mount it with agent.extraVolumes and agent.extraVolumeMounts, or use agent.kubeconfigs.%s.secret instead", quote(name))
				}
				others = append(others, account)
			}
			names[name] = true
		}
		if list.Content = others; len(others) == 0 {
			remove(config, "kubernetes.accounts")
		}
	}
	for _, e := range c.clusters {
		c.cluster(e, settingsOf[e.key.Value])
	}
}

func isTrue(n *yaml.Node) bool { return n != nil && configfile.IsTrue(n.Value) }

// ownAccount converts the account of the agent's own cluster.
func (c *converter) ownAccount(account *yaml.Node, name string) {
	remove(account, "name")
	remove(account, "serviceAccount")
	set(c.agent, "account.name", text(name))
	only, namespaces := find(account, "onlyNamespacedResources"), find(account, "namespaces")
	if isTrue(only) && namespaces != nil && namespaces.Kind == yaml.SequenceNode {
		remove(account, "onlyNamespacedResources")
		remove(account, "namespaces")
		set(c.agent, "rbac.namespaces", namespaces)
	}
	if len(account.Content) > 0 {
		set(c.agent, "account.settings", account)
	}
}

// cluster converts one of kubeconfigs: the name of a Secret and a key in it, or a whole kubeconfig.
func (c *converter) cluster(e entry, account *yaml.Node) {
	var file, secret string
	for _, below := range c.entries(e) {
		switch below.key.Value {
		case "file", "secret":
			if !c.is(below, yaml.ScalarNode, "a text") {
				return
			}
			if below.key.Value == "file" {
				file = below.node.Value
			} else {
				secret = below.node.Value
			}
		default:
			c.problem(below.key, "%s is unknown: a kubeconfig has file and secret", quote(below.path))
		}
	}
	if account != nil {
		remove(account, "name")
		remove(account, "kubeconfigFile")
	}
	switch {
	case strings.ContainsAny(file, "\n{"): // the content of --set-file
		c.kubeconfig(e.key.Value, c.kubeconfigSecret(e.key.Line, e.path+".file", e.key.Value, file), "", account)
	case strings.ContainsAny(secret, "\n{"):
		c.kubeconfig(e.key.Value, c.kubeconfigSecret(e.key.Line, e.path+".secret", e.key.Value, secret), "", account)
	case secret == "":
		c.problem(e.key, "%s.secret is missing: it is the name of the Secret with the kubeconfig", quote(e.path))
	case !secretNames.MatchString(secret):
		c.problem(e.key, "%s.secret is not the name of a Secret", quote(e.path))
	default:
		c.kubeconfig(e.key.Value, secret, file, account)
	}
}

// kubeconfig adds an account whose kubeconfig is in a Secret.
func (c *converter) kubeconfig(account, secret, key string, settings *yaml.Node) {
	converted := newMap()
	set(converted, "secret", text(secret))
	if key != "" && key != "config" {
		set(converted, "key", text(key))
	}
	if settings != nil {
		remove(settings, "name")
		if len(settings.Content) > 0 {
			set(converted, "settings", settings)
		}
	}
	if find(c.agent, "kubeconfigs") == nil {
		set(c.agent, "kubeconfigs", newMap())
	}
	setKey(find(c.agent, "kubeconfigs"), account, converted)
}

// secretNames matches names that Kubernetes accepts for Secrets.
var secretNames = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// otherThanName matches what names of Secrets cannot have.
var otherThanName = regexp.MustCompile(`[^a-z0-9]+`)

// kubeconfigSecret hands out a kubeconfig, and returns the name of the Secret for it.
func (c *converter) kubeconfigSecret(line int, path, account, content string) string {
	base := strings.Trim(otherThanName.ReplaceAllString(strings.ToLower(account), "-"), "-")
	name := strings.Trim(fmt.Sprintf("%.200s-kubeconfig", base), "-")
	for i := 2; slices.ContainsFunc(c.secrets, func(s Secret) bool { return s.Name == name }); i++ {
		name = strings.Trim(fmt.Sprintf("%.200s-kubeconfig-%d", base, i), "-")
	}
	c.secret(line, Secret{name, "config", path, []byte(content)})
	return name
}
