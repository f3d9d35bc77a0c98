package config

import (
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Tasks configures Spinnaker's tasks.
type Tasks struct {
	// Maximum time of one operation in a cluster.
	Timeout configfile.Duration `config:"timeout" default:"30s"`
	// Maximum time until a deleted object is gone, in addition to its grace period.
	DeleteTimeout configfile.Duration `config:"deleteTimeout" default:"10m"`
	// Time for which finished tasks can be read.
	Retention configfile.Duration `config:"keep" default:"96h"`
	// Maximum number of tasks that run at the same time. All together have 256 MiB for their manifests,
	// and those of one client have half. Further tasks are rejected, and Orca tries them again.
	MaxTasks int `config:"most" default:"2000"`
	// Keep the output of each change with its task, as Clouddriver keeps the output of kubectl, for accounts
	// with debug: true. Costs up to 1 MiB per task: the newest 500 outputs, 2 KiB each. Outputs do not contain objects.
	PersistOutput bool `config:"persistOutput" default:"false"`
	// With persistOutput, keep the output of all accounts.
	PersistOutputForAllAccounts bool `config:"persistOutputForAllAccounts" default:"false"`
}

// Durations returns Timeout, DeleteTimeout and Retention.
func (t Tasks) Durations() (timeout, deleteTimeout, retention time.Duration) {
	return time.Duration(t.Timeout), time.Duration(t.DeleteTimeout), time.Duration(t.Retention)
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
		c.addProblem("manifests.dockerImages", "%q must be match-name-and-tag or match-name-only, got %q", "manifests.dockerImages",
			m.DockerImages)
	}
}
