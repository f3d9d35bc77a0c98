package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch"
)

func loadConfig(t *testing.T, content string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestRBACNeedsOneKnownAccount(t *testing.T) {
	one := loadConfig(t, "kubernetes.accounts: [{name: prod, kubeconfigFile: /k}]\n")
	two := loadConfig(t, "kubernetes.accounts: [{name: prod, kubeconfigFile: /k}, {name: dev, kubeconfigFile: /k}, {name: bad, kubeconfigFile: /k, permissions: {READ: [' ']}}]\n")
	for _, tt := range []struct {
		name string
		cfg  *config.Config
		args []string
		want string // a name, or the error
	}{
		{"the only one", one, nil, "prod"},
		{"by name", two, []string{"dev"}, "dev"},
		{"none is named", two, nil, "name one of the 2 accounts of the configuration: prod and dev"},
		{"two are named", two, []string{"dev", "prod"}, "rbac takes one account"},
		{"misspelt", two, []string{"prd"}, `the configuration has no account "prd": did you mean prod?`},
		{"not similar", two, []string{"x"}, `the configuration has no account "x": there are prod and dev`},
		{"of none", loadConfig(t, "{}"), nil, "the configuration has no accounts: add them as kubernetes.accounts"},
		{"left out", two, []string{"bad"}, "account bad is left out of the configuration"},
	} {
		account, err := findAccount(tt.cfg, tt.args)
		got := string(account.Name)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestNeedsOfSelection(t *testing.T) {
	resource := func(kind, plural string) vedette.Resource {
		return vedette.Resource{Kind: vedette.ParseKind(kind), Version: "v1", Plural: plural, Namespaced: true}
	}
	catalogue := kube.Catalogue{Resources: []vedette.Resource{resource("Pod", "pods"), resource("ConfigMap", "configmaps")}}
	needs, unserved := rulesOptions{changed: "cm, configmap ,Gadget", readOnly: true}.needs(watch.Selection{Kinds: []string{"pod", "Podd"},
		Namespaces: []string{"a", "b", "a"}, OmitNamespaces: []string{"b"}}, catalogue)
	if !needs.ReadOnly || len(needs.Cached) != 1 || len(needs.Changed) != 1 || needs.Changed[0].Namespace != "a" || !slices.Equal(needs.Namespaces, []string{"a"}) {
		t.Errorf("got %+v, want a feed of each kind in namespace a", needs)
	}
	if !slices.Equal(unserved, []string{"Podd", "cm", "Gadget"}) {
		t.Errorf("got unserved kinds %q", unserved)
	}
	needs, unserved = rulesOptions{kinds: "configmap,Podd"}.needs(watch.Selection{}, catalogue)
	if len(needs.Cached) != 1 || !slices.Equal(unserved, []string{"Podd"}) {
		t.Errorf("kinds of the server: got %+v and unserved kinds %q", needs, unserved)
	}
}
