package config

import (
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/settings"
)

// renames moves keys of Spring to ours.
var renames = [...]configfile.Rename{
	{From: "logging.level.root", To: "logging.level"},
}

// otherProductKeys are keys of Spring and of Clouddriver in groups that the agent has too, so that a file
// that is copied from Clouddriver's loads. They are named at start, and have no effect.
var otherProductKeys = [...]string{
	"account", "appengine", "artifact-store", "artifacts", "aws", "azure", "bastion", "cats", "cf", "cloudfoundry",
	"credentials", "dcos", "default", "docker", "dockerRegistry", "ecs", "edda", "endpoints", "eureka", "features",
	"fiat", "google", "huaweicloud", "hystrix", "jedis", "lambda", "okHttp", "okHttpClient", "oracle",
	"redis", "resilience4j", "retrofit", "security", "services", "spectator", "spinnaker", "spring", "sql", "swagger",
	"telemetry", "tencentcloud", "titan", "yandex",
	"kubernetes.artifactBinding", "kubernetes.cache", "kubernetes.jobExecutor", "kubernetes.jobs", "kubernetes.primaryAccount",
	"kubernetes.v2",
}

// server describes the files of vedette-server, which must not be taken for those of an agent.
var server = configfile.OtherProgram{
	Name: "vedette-server",
	Keys: []string{"dataDir", "grpc", "sql", "cache", "accounts", "agents", "credentials", "services", "upstream", "manifests", "jobs",
		"history", "artifacts", "artifact-store", "armory", "kubesvc"},
	Shared: settings.SharedKeys[:],
}

const (
	ofServer      = "It belongs into the file of vedette-server."
	otherProvider = "An agent has accounts of Kubernetes only; keep a Clouddriver for this provider."
)

// otherProductReasons say what has the effect of keys of Clouddriver.
var otherProductReasons = configfile.Reasons{
	"artifact-store": ofServer, "artifacts": ofServer, "credentials": ofServer, "services": ofServer, "sql": ofServer,
	"appengine": otherProvider, "aws": otherProvider, "azure": otherProvider, "cloudfoundry": otherProvider, "dockerRegistry": otherProvider,
	"ecs": otherProvider, "google": otherProvider, "lambda": otherProvider, "oracle": otherProvider,
	"redis": "The agent keeps nothing but memory.", "spectator": "Set prometheus.enabled for metrics.",
}

// allReasons returns why keys have no effect.
func allReasons() configfile.Reasons { return settings.Reasons(otherProductReasons, reasons) }
