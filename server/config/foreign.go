package config

// foreign are keys of Spring and of Clouddriver in groups that the server has too, so that
// Clouddriver's own file loads. They are named at start, and have no effect.
var foreign = [...]string{
	"bastion", "cats", "cf", "dcos", "docker", "edda", "endpoints", "eureka", "features", "fiat", "huaweicloud",
	"hystrix", "jedis", "okHttp", "resilience4j", "retrofit", "security", "spring", "swagger", "telemetry",
	"tencentcloud", "titan", "yandex",
	"kubesvc.operations", // Clouddriver's own group of this name
	"credentials.storage", "credentials.types",
	"logging.level", "logging.file", "logging.config", "logging.group", "logging.pattern",
	"server.compression", "server.error", "server.forwardHeadersStrategy", "server.http2", "server.jetty", "server.maxHttpHeaderSize",
	"server.servlet", "server.shutdown", "server.tomcat", "server.undertow",
	"server.ssl.ciphers", "server.ssl.crlFile", "server.ssl.enabledProtocols", "server.ssl.keyAlias", "server.ssl.keyStore",
	"server.ssl.keyStorePassword", "server.ssl.keyStoreProvider", "server.ssl.keyStoreType", "server.ssl.protocol",
	"server.ssl.trustStore", "server.ssl.trustStorePassword", "server.ssl.trustStoreProvider", "server.ssl.trustStoreType",
	"sql.agent", "sql.baseUrl", "sql.readOnly", "sql.tableNamespace",
}
