package config

import (
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/task"
)

// Tasks configures Spinnaker's tasks.
type Tasks struct {
	task.Config
	// Keep the output of each change with its task, as Clouddriver keeps the output of kubectl, for accounts
	// with debug: true. Costs up to 1 MiB per task: the newest 500 outputs, 2 KiB each. Outputs do not contain objects.
	PersistOutput bool `config:"persistOutput" default:"false"`
	// With persistOutput, keep the output of all accounts.
	PersistOutputForAllAccounts bool `config:"persistOutputForAllAccounts" default:"false"`
}

// OutputPolicy returns which accounts' outputs are kept.
func (t Tasks) OutputPolicy() task.OutputPolicy {
	switch {
	case !t.PersistOutput:
		return task.OutputNone
	case t.PersistOutputForAllAccounts:
		return task.OutputAll
	}
	return task.OutputDebug
}

// Manifests configures how deployments change manifests.
type Manifests struct {
	// Set the labels app.kubernetes.io/name and app.kubernetes.io/managed-by.
	AppLabels bool `config:"appLabels" default:"true"`
	// Text after "spinnaker-" in the label app.kubernetes.io/managed-by.
	ManagedBySuffix string `config:"managedBySuffix"`
	// Images that an artifact replaces: match-name-and-tag replaces all images of its name, whatever their tag;
	// match-name-only replaces only those without a tag.
	DockerImages string `config:"dockerImages" default:"match-name-and-tag"`
}

// Jobs configures how Spinnaker sees Jobs that stages run.
type Jobs struct {
	// Include the status of a Job's pods. If false, the execution context of Jobs with many pods stays small;
	// the reason of a failure is included in any case.
	DetailedPodStatus bool `config:"detailedPodStatus" default:"true"`
}

// Rules returns the rules of deployments.
func (m Manifests) Rules() manifest.Rules {
	return manifest.Rules{SkipAppLabels: !m.AppLabels, ManagedBySuffix: m.ManagedBySuffix,
		MatchNameOnly: strings.EqualFold(m.DockerImages, matchNameOnly)}
}

const (
	matchNameOnly   = "match-name-only"
	matchNameAndTag = "match-name-and-tag"
)

func (m Manifests) check(c configfile.Checker) {
	if !strings.EqualFold(m.DockerImages, matchNameOnly) && !strings.EqualFold(m.DockerImages, matchNameAndTag) {
		c.Problem("dockerImages", " must be match-name-and-tag or match-name-only, got %q", m.DockerImages)
	}
}
