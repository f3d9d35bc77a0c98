package config

import (
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/settings"
)

// otherProductKeys are keys of Spring and of Clouddriver in groups that the server has too, so that
// Clouddriver's own file loads. They are named at start, and have no effect.
var otherProductKeys = [...]string{
	"bastion", "cats", "cf", "dcos", "docker", "edda", "endpoints", "eureka", "features", "fiat", "huaweicloud",
	"hystrix", "jedis", "okHttp", "resilience4j", "retrofit", "security", "spring", "swagger", "telemetry",
	"tencentcloud", "titan", "yandex",
	"kubesvc.operations", // Clouddriver's own group of this name
	"credentials.storage", "credentials.types",
	"sql.agent", "sql.baseUrl", "sql.readOnly", "sql.tableNamespace",
}

// agent describes the files of vedette-agent, which must not be taken for those of a server.
var agent = configfile.OtherProgram{
	Name: "vedette-agent",
	Keys: []string{"agentId", "zoneId", "timeoutSeconds", "balanceConnection", "clouddriverNamespace", "domainName", "clouddriver",
		"kubernetes", "redact", "outbox", "dynamicAccounts", "local", "hub"},
	Shared: settings.SharedKeys[:],
}
