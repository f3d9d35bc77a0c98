package settings

import (
	"maps"

	"github.com/vedette-io/vedette/internal/configfile"
)

// SharedKeys are the groups that both programs have.
var SharedKeys = [...]string{"server", "management", "logging", "prometheus", "pprof", "tracing", "tasks", "secrets", "spring"}

// Spring holds the keys of Spring that have an effect.
type Spring struct {
	Config struct {
		// Other files to read. Their settings override those of the file that imports them, and later files
		// override earlier ones. Paths are relative to the directory of the importing file. The prefix file: may be left
		// out. With the prefix optional: a file may be missing.
		Import configfile.Imports `config:"import"`
		// Profiles for which a further YAML document of a file applies. Only in such documents.
		Activate configfile.Ignored `config:"activate,ignored"`
	} `config:"config"`
	// Profiles for which a further YAML document of a file applies, in an older form. Active profiles come from the
	// environment only.
	Profiles configfile.Ignored `config:"profiles,ignored"`
}

// SpringKeys are keys of Spring in groups that both programs have too. They have no effect.
var SpringKeys = [...]string{
	"logging.level", "logging.file", "logging.config", "logging.group", "logging.pattern",
	"management.atlas", "management.auditevents", "management.cloudfoundry", "management.contextPath", "management.datadog",
	"management.defaults", "management.dynatrace", "management.elastic", "management.endpoint", "management.endpoints",
	"management.ganglia", "management.graphite", "management.health", "management.httpexchanges", "management.influx",
	"management.info", "management.metrics", "management.newrelic", "management.observations", "management.otlp", "management.port",
	"management.prometheus", "management.security", "management.server.basePath", "management.server.servlet", "management.simple",
	"management.stackdriver", "management.statsd", "management.trace", "management.tracing", "management.wavefront",
	"management.zipkin",
	"server.compression", "server.error", "server.forwardHeadersStrategy", "server.http2", "server.jetty", "server.maxHttpHeaderSize",
	"server.servlet", "server.shutdown", "server.tomcat", "server.undertow",
	"server.ssl.ciphers", "server.ssl.crlFile", "server.ssl.enabledProtocols", "server.ssl.keyAlias", "server.ssl.keyStore",
	"server.ssl.keyStorePassword", "server.ssl.keyStoreProvider", "server.ssl.keyStoreType", "server.ssl.protocol",
	"server.ssl.trustStore", "server.ssl.trustStorePassword", "server.ssl.trustStoreProvider", "server.ssl.trustStoreType",
}

// springReasons say what has the effect of keys of Spring here.
var springReasons = configfile.Reasons{
	"server.ssl.keyStore":   "Only Java reads keystores: convert it to PEM with openssl pkcs12, and set server.ssl.certFile.",
	"server.ssl.trustStore": "Only Java reads keystores: convert it to PEM with keytool and openssl, and set server.ssl.cacertFile.",
	"server.ssl.ciphers":    "Go chooses the cipher suites; none of them is known to be weak.",
	"logging.level":         "There is one level: set logging.level.",
	"logging.file":          "Set logging.file to the path of the file.",
	"logging.pattern":       "Set logging.format.",
	"management.endpoints":  "The paths are /health, /health/liveness, /health/readiness and, with prometheus.enabled, /metrics.",
	"management.endpoint":   "The paths are /health, /health/liveness, /health/readiness and, with prometheus.enabled, /metrics.",
	"management.health":     "/health/readiness and /ready say what is checked.",
	"management.port":       "Set management.server.port.",
	"management.metrics":    "Set prometheus.enabled.",
	"management.prometheus": "Set prometheus.enabled.",
	"management.tracing":    "Set tracing.enabled.",
	"management.otlp":       "Set tracing.enabled.",
}

// Reasons returns the reasons of a program with those of keys of Spring.
func Reasons(own ...configfile.Reasons) configfile.Reasons {
	all := maps.Clone(springReasons)
	for _, reasons := range own {
		maps.Copy(all, reasons)
	}
	return all
}
