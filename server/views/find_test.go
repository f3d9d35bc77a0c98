package views_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/views"
)

var served = []vedette.Resource{
	{Kind: vedette.Kind{Group: "serving.knative.dev", Name: "Service"}, Version: "v1", Plural: "services", Singular: "service"},
	{Kind: vedette.Kind{Name: "Service"}, Version: "v1", Plural: "services", Singular: "service", ShortNames: []string{"svc"}, Namespaced: true},
	{Kind: vedette.Kind{Group: "extensions", Name: "Ingress"}, Version: "v1beta1", Plural: "ingresses", Namespaced: true},
	{Kind: vedette.Kind{Group: "a.example.com", Name: "Backup"}, Version: "v1", Plural: "backups"},
	{Kind: vedette.Kind{Group: "b.example.com", Name: "Backup"}, Version: "v1", Plural: "backups"},
	{Kind: vedette.Kind{Group: "stable.example.com", Name: "CronTab"}, Version: "v1", Plural: "crontabs", ShortNames: []string{"ct"}},
}

func TestFindResource(t *testing.T) {
	for _, tt := range []struct{ why, name, want string }{
		{"the core group comes first", "services", "Service"},
		{"a short name", "SVC", "Service"},
		{"a group that is written counts", "service.serving.knative.dev", "Service.serving.knative.dev"},
		{"extensions come last of Kubernetes' own", "ingress", "Ingress.networking.k8s.io"},
		{"but can be asked for", "ingress.extensions", "Ingress.extensions"},
		{"a custom kind", "ct", "CronTab.stable.example.com"},
		{"kinds that no agent has reported yet are known too", "deploy", "Deployment.apps"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			got, err := views.FindResource(served, tt.name)
			if err != nil || got.Kind.String() != tt.want {
				t.Errorf("Find(%q) = %s, %v; want %s", tt.name, got.Kind, err, tt.want)
			}
		})
	}
}

func TestFindResourceErrors(t *testing.T) {
	for _, tt := range []struct{ why, name, want string }{
		{"two foreign groups", "backups", `"backups" may mean backups.a.example.com or backups.b.example.com`},
		{"a typing error", "depolyments.apps", "did you mean deployments.apps?"},
		{"nothing like it", "zebra", `no agent reports a kind "zebra". Kinds are there once`},
		{"nothing at all", "", "no agent reports a kind"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			_, err := views.FindResource(served, tt.name)
			if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Find(%q): %v; want an invalid error with %q", tt.name, err, tt.want)
			}
		})
	}
}

func FuzzFindResource(f *testing.F) {
	for _, name := range []string{"pods", "Deployment.apps", "..", "services.", ".apps", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r, err := views.FindResource(served, name)
		if err == nil && !r.Matches(name) {
			t.Errorf("Find(%q) = %s, which does not answer to it", name, r.Kind)
		}
		if err != nil && vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("Find(%q): %v", name, err)
		}
	})
}
