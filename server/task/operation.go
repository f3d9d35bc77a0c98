package task

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// operation is the description of something to do, which knows how.
type operation interface {
	account() vedette.AccountName
	provider() string
	// check judges the description before anything is accepted.
	check(v *validation)
	// run carries it out. A nil result is none: nothing is told of it.
	run(ctx context.Context, t *turn) (*Result, error)
}

func (c common) provider() string { return string(c.CloudProvider) }

// sort is one of the operations that Clouddriver's Kubernetes provider has.
type sort struct {
	name  string // in requests
	class string // in histories: Clouddriver's class
	phase string // of the history's lines
	// context stands in what validation finds; empty where Clouddriver validates
	// nothing.
	context string
	parse   func(json.RawMessage) (operation, error)
}

// sorts are in the order in which Clouddriver lists them.
func sorts() []sort {
	return []sort{
		{"deployManifest", "KubernetesDeployManifestOperation", "DEPLOY_KUBERNETES_MANIFEST", "deployKubernetesManifest", parseDeploy},
		{"deleteManifest", "KubernetesDeleteManifestOperation", "DELETE_KUBERNETES_MANIFEST", "deleteKubernetesManifest", as[remove]},
		{"scaleManifest", "KubernetesScaleManifestOperation", "SCALE_KUBERNETES_MANIFEST", "scaleKubernetesManifest", as[scale]},
		{"patchManifest", "KubernetesPatchManifestOperation", "PATCH_KUBERNETES_MANIFEST", "patchKubernetesManifest", as[patch]},
		{"pauseRolloutManifest", "KubernetesPauseRolloutManifestOperation", "PAUSE_ROLLOUT_KUBERNETES_MANIFEST", "pauseRolloutKubernetesManifest", as[pause]},
		{"resumeRolloutManifest", "KubernetesResumeRolloutManifestOperation", "RESUME_ROLLOUT_KUBERNETES_MANIFEST", "resumeRolloutKubernetesManifest", as[resume]},
		{"undoRolloutManifest", "KubernetesUndoRolloutManifestOperation", "UNDO_ROLLOUT_KUBERNETES_MANIFEST", "undoRolloutKubernetesManifest", as[undo]},
		{"rollingRestartManifest", "KubernetesRollingRestartManifestOperation", "ROLLING_RESTART_KUBERNETES_MANIFEST", "rollingRestartKubernetesManifest", as[restart]},
		{"enableManifest", "KubernetesEnableManifestOperation", "ENABLE_MANIFEST", "enableKubernetesManifest", as[enable]},
		{"disableManifest", "KubernetesDisableManifestOperation", "DISABLE_MANIFEST", "disableKubernetesManifest", as[disable]},
		{"cleanupArtifacts", "KubernetesCleanupArtifactsOperation", "CLEANUP_KUBERNETES_ARTIFACTS", "", as[cleanup]},
		{"runJob", "KubernetesRunJobOperation", "RUN_KUBERNETES_JOB", "", as[job]},
		{"resizeServerGroup", "KubernetesResizeServerGroupOperation", "RESIZE_KUBERNETES_SERVER_GROUP", "deployKubernetesManifest", as[resize]}, // sic
	}
}

// pointer is an operation that D's pointer is.
type pointer[D any] interface {
	*D
	operation
}

// as parses the description of an operation D.
func as[D any, P pointer[D]](raw json.RawMessage) (operation, error) {
	d, err := parse[D](raw)
	return P(d), err
}

// Operations returns the names of the operations that there are.
func Operations() []string {
	var names []string
	for _, s := range sorts() {
		names = append(names, s.name)
	}
	return names
}

func sortOf(name, provider string) (sort, error) {
	plain, _, _ := strings.Cut(name, "@") // a version, of which there is one
	all := sorts()
	at := slices.IndexFunc(all, func(s sort) bool { return s.name == plain })
	if at < 0 || provider != kubernetes {
		return sort{}, &UnknownError{Operation: name, Provider: provider}
	}
	return all[at], nil
}

const kubernetes = "kubernetes"
