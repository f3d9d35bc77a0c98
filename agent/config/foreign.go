package config

import "github.com/vedette-io/vedette/internal/configfile"

// renames moves keys of Spring to ours.
var renames = [...]configfile.Rename{
	{From: "logging.level.root", To: "logging.level"},
}

// foreign are keys of Spring and of Clouddriver in groups that the agent has too, so that a file
// that is copied from Clouddriver's loads. They are named at start, and have no effect.
var foreign = [...]string{
	"account", "appengine", "artifact-store", "artifacts", "aws", "azure", "bastion", "cats", "cf", "cloudfoundry",
	"credentials", "dcos", "default", "docker", "dockerRegistry", "ecs", "edda", "endpoints", "eureka", "features",
	"fiat", "google", "huaweicloud", "hystrix", "jedis", "lambda", "management", "okHttp", "okHttpClient", "oracle",
	"redis", "resilience4j", "retrofit", "security", "services", "spectator", "spinnaker", "spring", "sql", "swagger",
	"telemetry", "tencentcloud", "titan", "yandex",
	"logging.level", "logging.file", "logging.config", "logging.group", "logging.pattern",
	"server.compression", "server.error", "server.forwardHeadersStrategy", "server.http2", "server.jetty", "server.maxHttpHeaderSize",
	"server.servlet", "server.shutdown", "server.tomcat", "server.undertow",
	"server.ssl.ciphers", "server.ssl.crlFile", "server.ssl.enabledProtocols", "server.ssl.keyAlias", "server.ssl.keyStore",
	"server.ssl.keyStorePassword", "server.ssl.keyStoreProvider", "server.ssl.keyStoreType", "server.ssl.protocol",
	"server.ssl.trustStore", "server.ssl.trustStorePassword", "server.ssl.trustStoreProvider", "server.ssl.trustStoreType",
	"kubernetes.artifactBinding", "kubernetes.cache", "kubernetes.jobExecutor", "kubernetes.jobs", "kubernetes.primaryAccount",
	"kubernetes.v2",
}
