package config

import (
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Tasks configures how Spinnaker's operations run.
type Tasks struct {
	// How long one operation in a cluster may take.
	Timeout configfile.Duration `config:"timeout" default:"30s"`
	// How long a deletion may take until the object is gone, besides the grace period that it is given.
	DeleteTimeout configfile.Duration `config:"deleteTimeout" default:"10m"`
	// How long the end of a task can be read.
	Retention configfile.Duration `config:"keep" default:"96h"`
	// How many tasks may run on one server at once. Each holds the manifests that it was given. What is beyond is refused, and Orca tries again.
	MaxTasks int `config:"most" default:"2000"`
	// Keep with a task what became of each change of a cluster, as the outputs of kubectl that Clouddriver keeps: of accounts that have debug set. The newest 500 are kept, 2 KiB each, and nothing of what objects hold.
	PersistOutput bool `config:"persistOutput" default:"false"`
	// Keep it of all accounts.
	PersistOutputForAllAccounts bool `config:"persistOutputForAllAccounts" default:"false"`
}

// Durations returns Timeout, DeleteTimeout and Retention.
func (t Tasks) Durations() (timeout, deleteTimeout, retention time.Duration) {
	return time.Duration(t.Timeout), time.Duration(t.DeleteTimeout), time.Duration(t.Retention)
}

// Manifests configures how deployments change manifests.
type Manifests struct {
	// Write the labels app.kubernetes.io/name and app.kubernetes.io/managed-by.
	AppLabels bool `config:"appLabels" default:"true"`
	// What follows "spinnaker-" in the label app.kubernetes.io/managed-by.
	ManagedBySuffix string `config:"managedBySuffix"`
	// Which images an artifact replaces: those of its name, whatever their tag (match-name-and-tag), or only those that have none (match-name-only).
	DockerImages string `config:"dockerImages" default:"match-name-and-tag"`
}

// Jobs configures what is returned about Jobs that stages run.
type Jobs struct {
	// Tell the status of a Job's pods with it. Without, an execution's context stays small where Jobs have many pods; why a Job failed is told nonetheless.
	DetailedPodStatus bool `config:"detailedPodStatus" default:"true"`
}

const matchNameOnly = "match-name-only"

// MatchNameOnly reports whether artifacts replace only images without a tag.
func (m Manifests) MatchNameOnly() bool { return strings.EqualFold(m.DockerImages, matchNameOnly) }

func (c *Config) checkTasks(t Tasks, m Manifests) {
	for _, d := range []struct {
		path  string
		value configfile.Duration
	}{{"tasks.timeout", t.Timeout}, {"tasks.deleteTimeout", t.DeleteTimeout}, {"tasks.keep", t.Retention}} {
		if time.Duration(d.value) < time.Second {
			c.addProblem(d.path, "%q must be 1s or more, got %s", d.path, time.Duration(d.value))
		}
	}
	if t.MaxTasks < 1 {
		c.addProblem("tasks.most", "%q must be 1 or more, got %d", "tasks.most", t.MaxTasks)
	}
	if !m.MatchNameOnly() && !strings.EqualFold(m.DockerImages, "match-name-and-tag") {
		c.addProblem("manifests.dockerImages", "%q must be match-name-and-tag or match-name-only, got %q", "manifests.dockerImages", m.DockerImages)
	}
}
