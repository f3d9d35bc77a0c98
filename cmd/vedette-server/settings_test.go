package main

import (
	"slices"
	"testing"

	"github.com/vedette-io/vedette/server/config"
)

// TestCachedKinds holds which names of kinds cache.omitKinds covers.
func TestCachedKinds(t *testing.T) {
	for _, tt := range []struct {
		why               string
		kinds, omit, want []string
	}{
		{"nothing is omitted", []string{"Pod", "Deployment"}, nil, []string{"Pod", "Deployment"}},
		{"in any case", []string{"Pod", "Deployment"}, []string{"pod"}, []string{"Deployment"}},
		{"a name without a group covers Kubernetes' own groups", []string{"Deployment.apps", "Ingress.networking.k8s.io", "Pod"}, []string{"Deployment", "ingress"}, []string{"Pod"}},
		{"and no others", []string{"Service.serving.knative.dev"}, []string{"Service"}, []string{"Service.serving.knative.dev"}},
		{"a name with a group covers one without", []string{"Deployment"}, []string{"deployment.apps"}, nil},
		{"unless the group is another's", []string{"Service"}, []string{"Service.serving.knative.dev"}, []string{"Service"}},
		{"nor another group", []string{"Job.batch"}, []string{"Job.armory.io"}, []string{"Job.batch"}},
	} {
		if got := cachedKinds(config.Cache{Kinds: tt.kinds, OmitKinds: tt.omit}); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.why, got, tt.want)
		}
	}
}
