package sample

import (
	"fmt"
	"strings"
	"sync"
)

// app is what the objects of one application have in common.
type app struct {
	name, team, tier   string
	image, imageID     string
	cpu, memory, probe string
	port               int
	env, envFields     string // in JSON
}

var (
	systemNamespaces = []string{"kube-system", "default"}

	teams = strings.Fields("payments orders search catalogue identity platform mobile web data reporting fraud pricing stock " +
		"logistics returns loyalty content media partners finance support messaging insights experiments")

	nouns = strings.Fields("basket checkout ledger invoice refund voucher price tariff search suggest ranking index feed import export " +
		"profile session token consent address parcel label carrier depot shelf forecast report metric event audit")

	roles = strings.Fields("api worker gateway sync cache relay store engine watcher mailer loader proxy router planner scorer bridge")

	settings = strings.Fields("LOG_LEVEL DATABASE_URL DATABASE_POOL_SIZE REDIS_ADDRESS KAFKA_BROKERS KAFKA_GROUP_ID HTTP_TIMEOUT_MS " +
		"MAX_RETRIES FEATURE_FLAGS REGION ZONE OTEL_EXPORTER_OTLP_ENDPOINT OTEL_SERVICE_NAME JAVA_OPTS GOMEMLIMIT NODE_ENV " +
		"SENTRY_DSN S3_BUCKET QUEUE_NAME CACHE_TTL_SECONDS RATE_LIMIT BATCH_SIZE WORKER_THREADS UPSTREAM_URL AUTH_ISSUER " +
		"AUTH_AUDIENCE CORS_ORIGINS SHUTDOWN_GRACE_SECONDS METRICS_PREFIX TENANT LOCALE CURRENCY")
)

// allApps are the applications of the company: 30 nouns times 16 roles.
var allApps = sync.OnceValue(func() []app {
	var apps []app
	for _, role := range roles {
		for _, thing := range nouns {
			apps = append(apps, newApp(thing+"-"+role, mix(uint64(len(apps)))))
		}
	}
	return apps
})

func pick(from []string, h uint64) string { return from[h%uint64(len(from))] }

func newApp(name string, h uint64) app {
	a := app{name: name, team: pick(teams, h), tier: pick([]string{"frontend", "backend", "batch"}, h>>8),
		cpu: pick([]string{"500m", "1", "2", "4"}, h>>16), memory: pick([]string{"256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}, h>>20),
		probe: "/" + pick([]string{"health", "actuator/health", "healthz", "status", "internal/health"}, h>>24),
		port:  8000 + int(h>>28%100)}
	repository := "registry.example.com/" + a.team + "/" + name
	a.image = fmt.Sprintf("%s:%d.%d.%d", repository, 1+h>>32%4, h>>36%60, h>>42%20)
	a.imageID = repository + "@sha256:" + string(appendLongHex(nil, h))
	a.configure(h)
	return a
}

// configure gives an application 4 to 9 environment variables.
func (a *app) configure(h uint64) {
	var env, fields []string
	for i := range 4 + h>>48%6 {
		h := mix(h + i)
		name := settings[(int(h%3)+int(i)*3)%len(settings)]
		env = append(env, fmt.Sprintf(`{"name":%q,%s}`, name, a.value(name, h)))
		source := `"f:value":{}`
		if strings.Contains(env[i], "valueFrom") {
			source = `"f:valueFrom":{".":{},"f:secretKeyRef":{}}`
		}
		fields = append(fields, fmt.Sprintf(`"k:{\"name\":\"%s\"}":{".":{},"f:name":{},%s}`, name, source))
	}
	a.env = "[" + strings.Join(env, ",") + "]"
	a.envFields = `{".":{},` + strings.Join(fields, ",") + "}"
}

// value returns a value that fits the name of a variable.
func (a *app) value(name string, h uint64) string {
	switch {
	case strings.HasSuffix(name, "DSN"), strings.HasSuffix(name, "ISSUER"):
		return fmt.Sprintf(`"valueFrom":{"secretKeyRef":{"name":"%s-credentials","key":"%s"}}`, a.name, strings.ToLower(name))
	case strings.HasSuffix(name, "URL"), strings.HasSuffix(name, "ENDPOINT"), strings.HasSuffix(name, "BROKERS"),
		strings.HasSuffix(name, "ADDRESS"):
		return fmt.Sprintf(`"value":"http://%s-%s.%s.svc:%d"`, pick(nouns, h), pick(roles, h>>8), pick(teams, h>>16), 8000+h>>24%100)
	case strings.HasSuffix(name, "OPTS"):
		return fmt.Sprintf(`"value":"-XX:MaxRAMPercentage=%d -XX:+UseG1GC -Dfile.encoding=UTF-8 -Dapp=%s"`, 50+h%40, a.name)
	case strings.HasSuffix(name, "FLAGS"):
		return fmt.Sprintf(`"value":"%s-%s,%s-%s,%s"`, pick(nouns, h), pick(roles, h>>8), pick(nouns, h>>16), pick(roles, h>>24),
			pick(nouns, h>>32))
	case h%3 == 0:
		return fmt.Sprintf(`"value":"%s-%s"`, a.team, pick(nouns, h>>8))
	}
	return fmt.Sprintf(`"value":"%d"`, h>>8%5000)
}
