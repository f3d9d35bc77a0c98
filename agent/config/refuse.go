package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Refused is an account that is left out.
type Refused struct {
	Name   string              // as written; empty where that is what is wrong
	Index  int                 // its place in kubernetes.accounts, from 0
	At     configfile.Position // of the entry
	Reason error               // joins all that is wrong with it
}

func accountPath(i int) string { return fmt.Sprintf("kubernetes.accounts[%d]", i) }

// checkAccounts reports what is wrong with each account, and with accounts that
// share a name.
func (c *Config) checkAccounts() {
	byName := map[string][]int{}
	for i, a := range c.Kubernetes.Accounts {
		if a.Name == "" && !c.report.IsSet(accountPath(i)+".name") && !c.report.Wrong(accountPath(i)) {
			c.problem(accountPath(i), "%q has no name", accountPath(i))
		}
		if a.Name != "" {
			byName[a.Name] = append(byName[a.Name], i)
		}
		c.checkAccount(accountPath(i), &c.Kubernetes.Accounts[i])
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if len(byName[name]) > 1 {
			c.shareName(name, byName[name])
		}
	}
}

// shareName refuses all accounts of one name: to take the first could show the
// wrong cluster under it.
func (c *Config) shareName(name string, indexes []int) {
	var places []string
	for _, i := range indexes {
		places = append(places, c.report.At(accountPath(i)+".name").String())
	}
	for _, i := range indexes {
		c.problem(accountPath(i)+".name", "several accounts are called %q, and none of them is used: they stand at %s", name, strings.Join(places, " and "))
	}
}

func (c *Config) checkAccount(path string, a *Account) {
	if c.report.IsSet(path+".name") && a.Name == "" && !c.report.Wrong(path+".name") {
		c.problem(path+".name", "%q must not be empty", path+".name")
	}
	c.exclusive(path, "kinds", a.Kinds, "omitKinds", a.OmitKinds)
	c.exclusive(path, "namespaces", a.Namespaces, "omitNamespaces", a.OmitNamespaces)
	if strings.HasPrefix(a.KubeconfigFile, "configserver:") {
		c.problem(path+".kubeconfigFile", "%q names a file on a config server, which an agent can't read: mount the file", path+".kubeconfigFile")
	}
	if a.KubeconfigFile != "" && a.KubeconfigContents.Reveal() != "" {
		c.problem(path+".kubeconfigContents", "%q has both kubeconfigFile and kubeconfigContents: leave one of them out", path)
	}
	for i, d := range a.CustomResourceDefinitions {
		at := fmt.Sprintf("%s.customResourceDefinitions[%d]", path, i)
		c.oneOf(at+".scope", d.Scope, "Namespaced", "Cluster")
		if d.Kind == "" {
			c.problem(at, "%q has no kind", at)
		}
	}
	for i, r := range a.CustomResources {
		if at := fmt.Sprintf("%s.customResources[%d]", path, i); r.KubernetesKind == "" {
			c.problem(at, "%q has no kubernetesKind", at)
		}
	}
	c.notNegative(path+".maxResumableResourceAgeMs", a.MaxResumableResourceAgeMs)
	c.checkGroups(path+".requiredGroupMembership", a)
}

// exclusive refuses two lists of which Clouddriver allows one.
func (c *Config) exclusive(path, one string, ones []string, other string, others []string) {
	if len(ones) > 0 && len(others) > 0 {
		c.problem(path+"."+other, "%q has both %s and %s: leave one of them out", path, one, other)
	}
}

// checkGroups holds the older form of permissions to the same rules.
func (c *Config) checkGroups(path string, a *Account) {
	groups := vedette.Permissions{Read: a.RequiredGroupMembership}
	if err := groups.Normalize(); err != nil {
		c.problem(path, "%q: a role must not be empty or hold white space", path)
	}
}

// refuse moves accounts with problems to Refused and returns the problems that
// are not of an account.
func (c *Config) refuse() []*configfile.Problem {
	var rest []*configfile.Problem
	bad := map[int][]*configfile.Problem{}
	for _, p := range c.report.Problems {
		if i, ok := accountOf(p.Path); ok && i < len(c.Kubernetes.Accounts) {
			bad[i] = append(bad[i], p)
		} else {
			rest = append(rest, p)
		}
	}
	c.written = c.Kubernetes.Accounts
	var good []Account
	for i, a := range c.Kubernetes.Accounts {
		if len(bad[i]) == 0 {
			good = append(good, a)
			continue
		}
		c.Refused = append(c.Refused, Refused{Name: a.Name, Index: i, At: c.report.At(accountPath(i)), Reason: configfile.Join(bad[i])})
	}
	c.Kubernetes.Accounts = good
	return rest
}

// accountOf returns the index of the account that a path lies in.
func accountOf(path string) (int, bool) {
	var i int
	n, err := fmt.Sscanf(path, "kubernetes.accounts[%d]", &i)
	return i, n == 1 && err == nil
}
