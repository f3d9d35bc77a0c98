package tables_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/tables"
)

var served = []vedette.Resource{
	{Kind: vedette.Kind{Group: "serving.knative.dev", Name: "Service"}, Version: "v1", Plural: "services", Singular: "service"},
	{Kind: vedette.Kind{Name: "Service"}, Version: "v1", Plural: "services", Singular: "service", ShortNames: []string{"svc"}, Namespaced: true},
	{Kind: vedette.Kind{Group: "extensions", Name: "Ingress"}, Version: "v1beta1", Plural: "ingresses", Namespaced: true},
	{Kind: vedette.Kind{Group: "a.example.com", Name: "Backup"}, Version: "v1", Plural: "backups"},
	{Kind: vedette.Kind{Group: "b.example.com", Name: "Backup"}, Version: "v1", Plural: "backups"},
	{Kind: vedette.Kind{Group: "stable.example.com", Name: "CronTab"}, Version: "v1", Plural: "crontabs", ShortNames: []string{"ct"}},
	{Kind: vedette.Kind{Group: "stable.example.com", Name: "Port"}, Version: "v1", Plural: "ports", ShortNames: []string{"po"}},
	{Kind: vedette.Kind{Group: "stable.example.com", Name: "Cm"}, Version: "v1", Plural: "cm", Singular: "cm"},
	{Kind: vedette.Kind{Group: "stable.example.com", Name: "Widget"}, Version: "v1", Plural: "widgets", ShortNames: []string{"gadget"}},
	{Kind: vedette.Kind{Group: "stable.example.com", Name: "WIDGET"}, Version: "v1", Plural: "bigwidgets", Singular: "bigwidget"},
	{Kind: vedette.Kind{Group: "stable.example.com", Name: "Gadget"}, Version: "v1", Plural: "biggadgets", Singular: "biggadget"},
}

func TestResourcesAreFoundByAnyName(t *testing.T) {
	for _, tt := range []struct{ scenario, name, want string }{
		{"the core group comes first", "services", "Service"},
		{"a short name", "SVC", "Service"},
		{"an explicit group", "service.serving.knative.dev", "Service.serving.knative.dev"},
		{"extensions is the last of Kubernetes' groups", "ingress", "Ingress.networking.k8s.io"},
		{"extensions with an explicit group", "ingress.extensions", "Ingress.extensions"},
		{"a custom kind", "ct", "CronTab.stable.example.com"},
		{"a kind of which another differs by case", "WIDGET.stable.example.com", "WIDGET.stable.example.com"},
		{"the other one", "Widget", "Widget.stable.example.com"},
		{"a kind that is another one's short name", "Gadget", "Gadget.stable.example.com"},
		{"a kind that no agent has reported yet", "deploy", "Deployment.apps"},
		{"a version", "crontabs.v1.stable.example.com", "CronTab.stable.example.com"},
		{"a custom kind with a short name of Kubernetes", "po", "Pod"},
		{"the plural of a custom kind that is a short name of Kubernetes", "cm", "ConfigMap"},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			got, err := tables.FindResource(served, tt.name)
			if err != nil || got.Kind.String() != tt.want {
				t.Errorf("FindResource(%q): got %s, %v, want %s", tt.name, got.Kind, err, tt.want)
			}
		})
	}
}

func TestFindResourceErrors(t *testing.T) {
	for _, tt := range []struct{ scenario, name, want string }{
		{"two foreign groups", "backups", `"backups" is ambiguous: use backups.a.example.com or backups.b.example.com`},
		{"two kinds that differ by case", "widget", `"widget" is ambiguous: use widgets.stable.example.com or bigwidgets.stable.example.com`},
		{"a misspelt kind", "depolyments.apps", "did you mean deployments.apps?"},
		{"an unknown kind", "zebra", `no agent reports a kind "zebra". A kind is known if`},
		{"an empty name", "", "no agent reports a kind"},
		{"another version", "crontabs.v2.stable.example.com", "no agent reports a kind"},
		{"a letter that only looks like one of ASCII", "\u212Anodes", "no agent reports a kind"},
		{"a long s", "service\u017F", "no agent reports a kind"},
		{"the beginning of a group", "crontabs.stable", "no agent reports a kind"},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			_, err := tables.FindResource(served, tt.name)
			if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("FindResource(%q): got %v, want an error of the kind Invalid with %q", tt.name, err, tt.want)
			}
		})
	}
}

func FuzzFindResource(f *testing.F) {
	for _, name := range []string{"pods", "Deployment.apps", "..", "services.", ".apps", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r, err := tables.FindResource(served, name)
		short, _, _ := strings.Cut(name, ".")
		if err == nil && !r.Matches(short) {
			t.Errorf("FindResource(%q): got %s, which does not match", name, r.Kind)
		}
		if err != nil && vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("FindResource(%q): got %v, want an error of the kind Invalid", name, err)
		}
	})
}
