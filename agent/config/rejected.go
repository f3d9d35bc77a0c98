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
			c.Report.AddAt(accountPath(i), "%q is missing", accountPath(i)+".name")
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
		c.Report.Checker().Problem(accountPath(i)+".name", " must be unique, got %q at %s: rename all but one, because none of them is used",
			name, strings.Join(places, " and "))
	}
}

func (c *Config) checkAccount(path string, a *Account) {
	to := c.Report.Checker().At(path)
	if to.IsSet("name") && a.Name == "" && !c.Report.HasProblem(path+".name") {
		to.Problem("name", " must not be empty")
	}
	checkName(to, "name", string(a.Name))
	if err := a.AccountName().Validate(); err != nil && a.Name != "" && !c.Report.HasProblem(path+".name") {
		to.Problem("name", " is invalid: %s", err)
	}
	checkNamespaces(to, "namespaces", a.Namespaces)
	checkNamespaces(to, "omitNamespaces", a.OmitNamespaces)
	c.checkExclusive(path, "kinds", "omitKinds", len(a.Kinds) > 0 && len(a.OmitKinds) > 0)
	c.checkExclusive(path, "namespaces", "omitNamespaces", len(a.Namespaces) > 0 && len(a.OmitNamespaces) > 0)
	c.checkExclusive(path, "kubeconfigFile", "kubeconfigContents", a.KubeconfigFile != "" && a.KubeconfigContents.Reveal() != "")
	hasProvider := a.Cloud.HasProvider()
	c.checkExclusive(path, "cloud.provider", "kubeconfigFile", hasProvider && a.KubeconfigFile != "")
	c.checkExclusive(path, "cloud.provider", "kubeconfigContents", hasProvider && a.KubeconfigContents.Reveal() != "")
	c.checkExclusive(path, "cloud.provider", "context", hasProvider && a.Context != "")
	c.checkExclusive(path, "cloud.provider", "serviceAccount", hasProvider && a.ServiceAccount)
	a.Cloud.Check(to.At("cloud"))
	if strings.HasPrefix(a.KubeconfigFile, "configserver:") {
		to.Problem("kubeconfigFile", " must be the path of a file because the agent cannot read from a config server, got %q: mount the file", a.KubeconfigFile)
	}
	for i, d := range a.CustomResourceDefinitions {
		if at := fmt.Sprintf("%s.customResourceDefinitions[%d]", path, i); d.Kind == "" {
			c.Report.AddAt(at, "%q is missing or empty", at+".kind")
		}
	}
	for i, r := range a.CustomResources {
		if at := fmt.Sprintf("%s.customResources[%d]", path, i); r.KubernetesKind == "" {
			c.Report.AddAt(at, "%q is missing or empty", at+".kubernetesKind")
		}
	}
	// The older form of permissions has the rules of the newer.
	if err := (&vedette.Permissions{Read: a.RequiredGroupMembership}).Normalize(); err != nil {
		to.Problem("requiredGroupMembership", " must contain only roles that are not empty and have no white space, got %q", a.RequiredGroupMembership)
	}
}

// checkNamespaces rejects what cannot be the name of a namespace and would change what is asked of the
// API server. An empty name, as from a placeholder whose variable is not set, would mean all namespaces.
func checkNamespaces(c configfile.Checker, key string, names []string) {
	for _, name := range names {
		if strings.Trim(name, namespaceCharacters) != "" || strings.Trim(name, ".") == "" || len(name) > maxName {
			c.Problem(key, " must contain names of namespaces, got %.70q", name)
		}
	}
}

// namespaceCharacters are more than those of namespaces, because a name in capitals does no harm.
const namespaceCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// maxName is the number of bytes that the server accepts.
const maxName = 255

// checkName checks the name of an account, an agent or a zone as the server does.
func checkName(c configfile.Checker, key, name string) {
	if len(name) > maxName {
		c.Problem(key, " must have at most %d bytes, got %.40q… with %d", maxName, name, len(name))
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		c.Problem(key, " must not contain control characters, got %.40q", name)
	}
}

// checkExclusive checks that at most one of two keys is set, as Clouddriver does.
func (c *Config) checkExclusive(path, first, second string, areBothSet bool) {
	if areBothSet {
		c.Report.AddAt(path+"."+second, "%q must not have both %s and %s: remove one of them", path, first, second)
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

func accountIndex(path string) (int, bool) {
	var i int
	n, err := fmt.Sscanf(path, "kubernetes.accounts[%d]", &i)
	return i, n == 1 && err == nil
}
