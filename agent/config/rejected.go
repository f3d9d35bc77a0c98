package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// RejectedAccount is an invalid account, which the agent does not use.
type RejectedAccount struct {
	Name   string              // as written; may be empty
	Index  int                 // in kubernetes.accounts, from 0
	At     configfile.Position // of the entry
	Reason error               // joins all problems of the account
}

func accountPath(i int) string { return fmt.Sprintf("kubernetes.accounts[%d]", i) }

// checkAccounts adds the problems of each account, and of accounts that share a name.
func (c *Config) checkAccounts() {
	byName := map[string][]int{}
	for i, a := range c.Kubernetes.Accounts {
		if a.Name == "" && !c.Report.IsSet(accountPath(i)+".name") && !c.Report.HasProblem(accountPath(i)) {
			c.addProblem(accountPath(i), "%q is missing", accountPath(i)+".name")
		}
		if a.Name != "" {
			byName[string(a.Name)] = append(byName[string(a.Name)], i)
		}
		c.checkAccount(accountPath(i), &c.Kubernetes.Accounts[i])
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if len(byName[name]) > 1 {
			c.rejectDuplicateName(name, byName[name])
		}
	}
}

// rejectDuplicateName rejects all accounts of one name, because the first of them
// could be the wrong cluster.
func (c *Config) rejectDuplicateName(name string, indexes []int) {
	var places []string
	for _, i := range indexes {
		places = append(places, c.Report.PositionOf(accountPath(i)+".name").String())
	}
	for _, i := range indexes {
		c.addProblem(accountPath(i)+".name", "%q must be unique, got %q at %s: rename all but one, because none of them is used",
			accountPath(i)+".name", name, strings.Join(places, " and "))
	}
}

func (c *Config) checkAccount(path string, a *Account) {
	if c.Report.IsSet(path+".name") && a.Name == "" && !c.Report.HasProblem(path+".name") {
		c.addProblem(path+".name", "%q must not be empty", path+".name")
	}
	c.checkName(path+".name", string(a.Name))
	if err := a.AccountName().Validate(); err != nil && a.Name != "" && !c.Report.HasProblem(path+".name") {
		c.addProblem(path+".name", "%q is invalid: %s", path+".name", err)
	}
	c.checkNamespaces(path+".namespaces", a.Namespaces)
	c.checkNamespaces(path+".omitNamespaces", a.OmitNamespaces)
	c.checkExclusive(path, "kinds", a.Kinds, "omitKinds", a.OmitKinds)
	c.checkExclusive(path, "namespaces", a.Namespaces, "omitNamespaces", a.OmitNamespaces)
	if strings.HasPrefix(a.KubeconfigFile, "configserver:") {
		c.addProblem(path+".kubeconfigFile", "%q must be the path of a file because the agent cannot read from a config server, got %q: mount the file",
			path+".kubeconfigFile", a.KubeconfigFile)
	}
	if a.KubeconfigFile != "" && a.KubeconfigContents.Reveal() != "" {
		c.addProblem(path+".kubeconfigContents", "%q must not have both kubeconfigFile and kubeconfigContents: remove one of them", path)
	}
	for i, d := range a.CustomResourceDefinitions {
		customPath := fmt.Sprintf("%s.customResourceDefinitions[%d]", path, i)
		c.checkOneOf(customPath+".scope", d.Scope, "Namespaced", "Cluster")
		if d.Kind == "" {
			c.addProblem(customPath, "%q is missing or empty", customPath+".kind")
		}
	}
	for i, r := range a.CustomResources {
		if at := fmt.Sprintf("%s.customResources[%d]", path, i); r.KubernetesKind == "" {
			c.addProblem(at, "%q is missing or empty", at+".kubernetesKind")
		}
	}
	c.checkNotNegative(path+".maxResumableResourceAgeMs", a.MaxResumableResourceAgeMs)
	c.checkRequiredGroups(path+".requiredGroupMembership", a)
}

// checkNamespaces rejects what cannot be the name of a namespace and would change what is asked of the
// API server. An empty name, as from a placeholder whose variable is not set, would mean all namespaces.
func (c *Config) checkNamespaces(path string, names []string) {
	for _, name := range names {
		if strings.Trim(name, namespaceCharacters) != "" || strings.Trim(name, ".") == "" || len(name) > maxName {
			c.addProblem(path, "%q must contain names of namespaces, got %.70q", path, name)
		}
	}
}

// namespaceCharacters are more than those of namespaces, because a name in capitals does no harm.
const namespaceCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// maxName is the number of bytes that the server accepts.
const maxName = 255

// checkName checks the name of an account, an agent or a zone as the server does.
func (c *Config) checkName(path, name string) {
	if len(name) > maxName {
		c.addProblem(path, "%q must have at most %d bytes, got %.40q… with %d", path, maxName, name, len(name))
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		c.addProblem(path, "%q must not contain control characters, got %.40q", path, name)
	}
}

// checkExclusive checks that at most one of two lists is set, as Clouddriver does.
func (c *Config) checkExclusive(path, firstKey string, first []string, secondKey string, second []string) {
	if len(first) > 0 && len(second) > 0 {
		c.addProblem(path+"."+secondKey, "%q must not have both %s and %s: remove one of them", path, firstKey, secondKey)
	}
}

// checkRequiredGroups checks the older form of permissions by the rules of the newer.
func (c *Config) checkRequiredGroups(path string, a *Account) {
	groups := vedette.Permissions{Read: a.RequiredGroupMembership}
	if err := groups.Normalize(); err != nil {
		c.addProblem(path, "%q must contain only roles that are not empty and have no white space, got %q", path, a.RequiredGroupMembership)
	}
}

// rejectInvalidAccounts moves accounts with problems to RejectedAccounts and returns
// the other problems.
func (c *Config) rejectInvalidAccounts() []*configfile.Problem {
	var otherProblems []*configfile.Problem
	accountProblems := map[int][]*configfile.Problem{}
	for _, p := range c.Report.Problems {
		if i, ok := accountIndex(p.Path); ok && i < len(c.Kubernetes.Accounts) {
			accountProblems[i] = append(accountProblems[i], p)
		} else {
			otherProblems = append(otherProblems, p)
		}
	}
	c.allAccounts = c.Kubernetes.Accounts
	var valid []Account
	for i, a := range c.Kubernetes.Accounts {
		if len(accountProblems[i]) == 0 {
			valid = append(valid, a)
			continue
		}
		c.RejectedAccounts = append(c.RejectedAccounts,
			RejectedAccount{Name: string(a.Name), Index: i, At: c.Report.PositionOf(accountPath(i)), Reason: configfile.Join(accountProblems[i])})
	}
	c.Kubernetes.Accounts = valid
	return otherProblems
}

// accountIndex returns the index of the account that a path belongs to.
func accountIndex(path string) (int, bool) {
	var i int
	n, err := fmt.Sscanf(path, "kubernetes.accounts[%d]", &i)
	return i, n == 1 && err == nil
}
