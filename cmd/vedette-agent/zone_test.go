package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/vedette-io/vedette/agent/config"
)

// TestZoneOfPod checks which of the owners of the pod and its name decides.
func TestZoneOfPod(t *testing.T) {
	for _, tt := range []struct {
		name             string
		byName           string
		ownerKind, owner string
		err              error
		want             string
	}{
		{"the owner of the pod", "agent_n", "Deployment", "renamed", nil, "renamed_n"},
		{"a pod of a StatefulSet", "", "StatefulSet", "agent", nil, "agent_n"},
		{"no right to read the owners", "agent_n", "", "", errors.New("denied"), "agent_n"},
		{"a pod without an owner", "", "", "", nil, ""},
	} {
		find := func(_ context.Context, pod config.Pod) (string, string, error) {
			if pod != (config.Pod{Namespace: "n", Name: "p"}) {
				t.Errorf("%s: asked for pod %v", tt.name, pod)
			}
			return tt.ownerKind, tt.owner, tt.err
		}
		if got := zoneOfPod(t.Context(), config.Pod{Namespace: "n", Name: "p"}, tt.byName, find, slog.New(slog.DiscardHandler)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
