package task

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// operation is an operation with its parsed description.
type operation interface {
	account() vedette.AccountName
	provider() string
	// check validates the description before the task is accepted.
	check(v *validation)
	// run executes the operation. A nil result is not reported.
	run(ctx context.Context, t *opContext) (*Result, error)
}

func (c commonFields) provider() string { return string(c.CloudProvider) }

// opSpec is one operation of Clouddriver's Kubernetes provider.
type opSpec struct {
	name  string // in requests
	class string // Clouddriver's class, in histories
	phase string // the phase of its history lines
	// validationContext is the context in validation errors. It is empty if Clouddriver
	// validates nothing.
	validationContext string
	parse             func(json.RawMessage) (operation, error)
}

// opSpecs returns the operations in Clouddriver's order.
func opSpecs() []opSpec {
	return []opSpec{
		{"deployManifest", "KubernetesDeployManifestOperation", "DEPLOY_KUBERNETES_MANIFEST", "deployKubernetesManifest", parseDeploy},
		{"deleteManifest", "KubernetesDeleteManifestOperation", "DELETE_KUBERNETES_MANIFEST", "deleteKubernetesManifest", parseAs[deleteOp]},
		{"scaleManifest", "KubernetesScaleManifestOperation", "SCALE_KUBERNETES_MANIFEST", "scaleKubernetesManifest", parseAs[scaleOp]},
		{"patchManifest", "KubernetesPatchManifestOperation", "PATCH_KUBERNETES_MANIFEST", "patchKubernetesManifest", parseAs[patchOp]},
		{"pauseRolloutManifest", "KubernetesPauseRolloutManifestOperation", "PAUSE_ROLLOUT_KUBERNETES_MANIFEST", "pauseRolloutKubernetesManifest",
			parseAs[pauseOp]},
		{"resumeRolloutManifest", "KubernetesResumeRolloutManifestOperation", "RESUME_ROLLOUT_KUBERNETES_MANIFEST",
			"resumeRolloutKubernetesManifest", parseAs[resumeOp]},
		{"undoRolloutManifest", "KubernetesUndoRolloutManifestOperation", "UNDO_ROLLOUT_KUBERNETES_MANIFEST", "undoRolloutKubernetesManifest",
			parseAs[undoOp]},
		{"rollingRestartManifest", "KubernetesRollingRestartManifestOperation", "ROLLING_RESTART_KUBERNETES_MANIFEST",
			"rollingRestartKubernetesManifest", parseAs[restartOp]},
		{"enableManifest", "KubernetesEnableManifestOperation", "ENABLE_MANIFEST", "enableKubernetesManifest", parseAs[enableOp]},
		{"disableManifest", "KubernetesDisableManifestOperation", "DISABLE_MANIFEST", "disableKubernetesManifest", parseAs[disableOp]},
		{"cleanupArtifacts", "KubernetesCleanupArtifactsOperation", "CLEANUP_KUBERNETES_ARTIFACTS", "", parseAs[cleanupOp]},
		{"runJob", "KubernetesRunJobOperation", "RUN_KUBERNETES_JOB", "", parseAs[runJobOp]},
		// sic
		{"resizeServerGroup", "KubernetesResizeServerGroupOperation", "RESIZE_KUBERNETES_SERVER_GROUP", "deployKubernetesManifest",
			parseAs[resizeOp]},
	}
}

type pointer[D any] interface {
	*D
	operation
}

// parseAs parses the description of an operation of type D.
func parseAs[D any, P pointer[D]](raw json.RawMessage) (operation, error) {
	d, err := parse[D](raw)
	return P(d), err
}

// Operations returns the names of all operations.
func Operations() []string {
	var names []string
	for _, s := range opSpecs() {
		names = append(names, s.name)
	}
	return names
}

func findOpSpec(name, provider string) (opSpec, error) {
	baseName, _, _ := strings.Cut(name, "@") // the version; there is only one
	all := opSpecs()
	index := slices.IndexFunc(all, func(s opSpec) bool { return s.name == baseName })
	if index < 0 || provider != kubernetes {
		return opSpec{}, &UnknownError{Operation: name, Provider: provider}
	}
	return all[index], nil
}

const kubernetes = "kubernetes"
