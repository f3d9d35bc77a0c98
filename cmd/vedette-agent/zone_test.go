package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/kube"
)

// TestZoneOfPod checks which of the owners of the pod and its name decides.
func TestZoneOfPod(t *testing.T) {
	for _, tt := range []struct {
		name             string
		byName           string
		ownerKind, owner string
		replicas         int
		err              error
		want             string
	}{
		{"the owner of the pod", "agent_n", "Deployment", "renamed", 3, nil, "renamed_n"},
		{"a pod of a StatefulSet", "", "StatefulSet", "agent", 0, nil, "agent_n"},
		{"no right to read the owners", "agent_n", "", "", 0, errors.New("denied"), "agent_n"},
		{"a pod without an owner", "", "", "", 0, nil, ""},
	} {
		find := func(_ context.Context, pod config.Pod) (kube.Workload, error) {
			if pod != (config.Pod{Namespace: "n", Name: "p"}) {
				t.Errorf("%s: asked for pod %v", tt.name, pod)
			}
			return kube.Workload{Kind: tt.ownerKind, Name: tt.owner, Replicas: tt.replicas}, tt.err
		}
		got, replicas := zoneOfPod(t.Context(), config.Pod{Namespace: "n", Name: "p"}, tt.byName, find, slog.New(slog.DiscardHandler))
		if got != tt.want || replicas != tt.replicas {
			t.Errorf("%s: got %q and %d replicas, want %q and %d", tt.name, got, replicas, tt.want, tt.replicas)
		}
	}
}
