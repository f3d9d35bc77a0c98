package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	agentconfig "github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configfile/configtest"
	"github.com/vedette-io/vedette/internal/golden"
	serverconfig "github.com/vedette-io/vedette/server/config"
)

// tested says which test checks the effect of keys: those with a prefix and one of some names. In a
// prefix, * stands for one segment of a path.
type tested struct {
	test   string // "server/config.TestX"
	prefix string
	names  string
}

var sharedOptions = []tested{
	{"internal/settings.TestContradictingSSLSettingsAreReported", "server.ssl.", "enabled certFile cacertFile clientAuth"},
	{"internal/settings.TestSSLKeyPair", "server.ssl.", "keyFile keyPassword"},
	{"internal/settings.TestMetricsOverTLS", "prometheus.ssl.", "enabled certFile keyFile cacertFile clientAuth"},
	{"internal/settings.TestSSLKeyPair", "prometheus.ssl.", "keyPassword"},
	{"internal/settings.TestSSLKeyPair", "management.server.ssl.", "keyFile keyPassword"},
	{"internal/settings.TestLoggingSettingsAreConverted", "logging.", "level format file multiWrite maxSizeMb maxAgeDays maxBackups localTime compress fields"},
	{"internal/secret/vault.TestEachKeyCountsInTheLogin", "secrets.vault.",
		"url authMethod path namespace role token username password userAuthPath roleId secretId cacertFile"},
	{"internal/configload.TestSettingsMayBeReferences", "secrets.vault.", "enabled"},
	{"internal/configfile.TestImportsAreBounded", "spring.config.", "import"},
}

var agentOptions = []tested{
	{"cmd/vedette-agent.TestManagementPortNeedsNoClientCertificate", "management.server.", "port address ssl.enabled ssl.certFile ssl.cacertFile ssl.clientAuth"},
	{"cmd/vedette-agent.TestSettingsCount", "", "agentId zoneId timeoutSeconds clouddriver.grpc clouddriver.insecure outbox.maxBytes"},
	{"agent/config.TestBalancedServers", "", "balanceConnection clouddriverNamespace domainName"},
	{"cmd/vedette-agent.TestSettingsCount", "kubernetes.", "wipeTLSBuffers cacheGroupSize cacheGroupDelayMs maxFeedsPerAccount verifyIntervalSeconds"},
	{"cmd/vedette-agent.TestSettingsCount", "tasks.", "totalBudget budgetPerAccount"},
	{"cmd/vedette-agent.TestSettingsCount", "server.", "host port adminTokenFile"},
	{"cmd/vedette-agent.TestSettingsCount", "prometheus.", "enabled host port maxAccounts"},
	{"cmd/vedette-agent.TestSettingsCount", "pprof.", "enabled port"},
	{"cmd/vedette-agent.TestAccountSettingsCount", "kubernetes.accounts[].", "name kubeconfigFile kubeconfigContents context serviceAccount " +
		"insecure noProxy kinds omitKinds namespaces omitNamespaces onlyNamespacedResources onlySpinnakerManaged permissions " +
		"requiredGroupMembership environment accountType cacheAllApplicationRelationships metrics checkReadiness debug oAuthScopes oAuthServiceAccount"},
	{"cmd/vedette-agent.TestAccountSettingsCount", "kubernetes.accounts[].cloud.", "provider server certificateAuthorityData certificateAuthorityFile tokens"},
	{"cmd/vedette-agent.TestAccountSettingsCount", "kubernetes.accounts[].cloud.eks.", "clusterName region roleArn externalId profile"},
	{"cmd/vedette-agent.TestAccountSettingsCount", "kubernetes.accounts[].cloud.aks.",
		"login tenantId clientId clientSecret clientCertificateFile serverId authorityHost"},
	{"cmd/vedette-agent.TestAccountSettingsCount", "kubernetes.accounts[].customResourceDefinitions[].", "kind scope"},
	{"cmd/vedette-agent.TestAccountSettingsCount", "kubernetes.accounts[].customResources[].",
		"kubernetesKind spinnakerKind deployPriority versioned namespaced"},
	{"cmd/vedette-agent.TestAccountSettingsCount", "kubernetes.accounts[].rawResourcesEndpointConfig.", "kindExpressions omitKindExpressions"},
	{"cmd/vedette-agent.TestNoProxyHasThreeLevels", "", "clouddriver.noProxy kubernetes.noProxy"},
	{"cmd/vedette-agent.TestTokensAreSent", "clouddriver.auth.", "token"},
	{"cmd/vedette-agent.TestTokensAreSent", "clouddriver.auth.tokenCommand.", "command args format refreshIntervalSeconds"},
	{"cmd/vedette-agent.TestBackoffSettingsBecomePauses", "", "kubernetes.reconnectTimeoutMs"},
	{"cmd/vedette-agent.TestBackoffSettingsBecomePauses", "clouddriver.backoff.", "baseDelay multiplier jitter maxDelay"},
	{"cmd/vedette-agent.TestNewOperateConfig", "kubernetes.", "fieldValidation"},
	{"cmd/vedette-agent.TestNewOperateConfig", "kubernetes.retries.", "enabled maxRetries backOffMs retryAnyError retryableErrors"},
	{"cmd/vedette-agent.TestNewOperateConfig", "kubernetes.serverSideApply.", "enabled clearManagedFields"},
	{"cmd/vedette-agent.TestNewOperateConfig", "kubernetes.serverSideApply.kinds[].", "kind enabled clearManagedFields"},
	{"cmd/vedette-agent.TestRedactionRulesAreConverted", "redact.", "preset annotations configMapKeys environment secretAnnotations"},
	{"agent/config.TestEachTLSKeyCounts", "clouddriver.tls.",
		"serverName insecureSkipVerify clientCertFile clientKeyFile clientKeyFilePassword cacertFile"},
	{"agent/config.TestAdminTokenIsNeverPrinted", "server.", "adminToken"},
	{"agent/config.TestTracingSettingsAreConverted", "tracing.", "enabled endpoint insecure"},
}

var serverOptions = []tested{
	{"cmd/vedette-server.TestManagementSettingsAreConverted", "management.server.", "port address ssl.enabled ssl.certFile ssl.cacertFile ssl.clientAuth"},
	{"cmd/vedette-server.TestSettingsCount", "", "dataDir sql.url sql.user sql.password sql.readReplicas sql.connectionPools history.keep history.maxBytes jobs.detailedPodStatus"},
	{"cmd/vedette-server.TestSettingsCount", "sql.shards[].", "name url user password readReplicas"},
	{"cmd/vedette-server.TestSettingsCount", "server.", "port address hosts trustedCallers readBytes"},
	{"cmd/vedette-server.TestPeersSettingsAreConverted", "server.", "id"},
	{"cmd/vedette-server.TestPeersSettingsAreConverted", "server.peers.", "port address advertise restOperations"},
	{"cmd/vedette-server.TestSettingsCount", "grpc.server.", "port address"},
	{"cmd/vedette-server.TestSettingsCount", "cache.", "kinds omitKinds all checkApplicationInFront50"},
	{"cmd/vedette-server.TestSettingsCount", "kubesvc.cache.", "cacheDefaults"},
	{"cmd/vedette-server.TestSettingsCount", "accounts.", "gracePeriod removeData"},
	{"cmd/vedette-server.TestSettingsCount", "agents.", "heartbeatSeconds creditBytes ingestBytes memoryBytes"},
	{"cmd/vedette-server.TestSettingsCount", "credentials.", "primaryAccountTypes challengeDestructiveActionsEnvironments"},
	{"cmd/vedette-server.TestSettingsCount", "services.fiat.", "enabled baseUrl legacyFallback"},
	{"cmd/vedette-server.TestSettingsCount", "services.fiat.cache.", "maxEntries expiresAfterWriteSeconds"},
	{"cmd/vedette-server.TestSettingsCount", "services.fiat.retry.", "maxBackoffMillis initialBackoffMillis retryMultiplier"},
	{"cmd/vedette-server.TestSettingsCount", "services.front50.", "baseUrl"},
	{"cmd/vedette-server.TestSettingsCount", "tasks.", "timeout deleteTimeout keep maxConcurrent persistOutput persistOutputForAllAccounts"},
	{"cmd/vedette-server.TestSettingsCount", "manifests.", "appLabels managedBySuffix dockerImages"},
	{"server/config.TestDiscoveryModes", "kubesvc.", "cluster"},
	{"cmd/vedette-server.TestLoadBalancerSetting", "kubesvc.", "loadBalancer"},
	{"server/config.TestDiscoverySettingsAreConverted", "kubesvc.cluster-kubernetes.", "clouddriverServiceNamePrefix httpPortName kubeconfigFile verifySsl namespace useDNS domainName failFast"},
	{"cmd/vedette-server.TestPluginKeysConfigureDispatch", "kubesvc.operations.retry.", "maxRetries backoffMs"},
	{"cmd/vedette-server.TestMetricsSettingsAreConverted", "prometheus.", "enabled port maxAccounts"},
	{"server/config.TestMetricsArePrivateWithoutTLS", "prometheus.", "address"},
	{"server/config.TestOpenPortsNeedAuthentication", "grpc.server.", "allowUnauthenticated"},
	{"server/config.TestSecurityOfAgentPortIsConverted", "grpc.server.security.",
		"enabled certificateChain privateKey privateKeyPassword clientAuth trustCertCollection protocols"},
	{"server/config.TestX509Filters", "grpc.auth.x509.", "enabled filters"},
	{"server/config.TestProfilesUseTheAdminToken", "", "server.adminToken server.adminTokenFile pprof.enabled pprof.port"},
	{"server/config.TestTracingSettingsAreConverted", "tracing.", "enabled endpoint insecure sampleRatio"},
	{"server/config.TestUpstreamSettingsAreConverted", "upstream.", "baseUrl username password headers mergeTimeout timeout mergeBytes refreshInterval maxStale partial"},
	{"server/config.TestUpstreamSettingsAreConverted", "upstream.ssl.", "cacertFile certFile keyFile keyPassword"},
	{"server/artifacts.TestEachAccountSettingCounts", "artifacts.", "enabled"},
	{"server/artifacts.TestEachAccountSettingCounts", "artifacts.*.", "enabled"},
	{"server/artifacts.TestEachAccountSettingCounts", "artifacts.*.accounts[].", "name useContentAPI githubAPIVersion repository jsonPath endpoint " +
		"apiEndpoint apiRegion region awsAccessKeyId awsSecretAccessKey namespace userId fingerprint tenancyId privateKeyPassphrase " +
		"sshPrivateKeyFilePath sshPrivateKeyPassphrase sshKnownHostsFilePath sshTrustUnknownHosts allowedHosts"},
	{"server/artifacts.TestArtifactPassphraseCommand", "artifacts.git-repo.accounts[].", "sshPrivateKeyPassphraseCmd"},
	{"server/artifacts.TestFilesTakePrecedenceInLogins", "artifacts.*.accounts[].", "username password usernamePasswordFile token tokenFile"},
	{"server/artifacts.TestURLRestrictionsHaveClouddriversDefaults", "artifacts.*.accounts[].urlRestrictions.",
		"allowedHostnamesRegex allowedSchemes rejectVerbatimIps allowedDomains excludedDomains extraExcludedPatterns"},
	{"server/artifacts.TestURLRestrictionAddresses", "artifacts.*.accounts[].urlRestrictions.",
		"rejectLocalhost rejectLinkLocal rejectedIps excludedDomainsFromEnvironment"},
	{"server/artifacts.TestEachAccountSettingCounts", "artifacts.limits.",
		"maxBytes maxIndexBytes maxGitObjectBytes timeout stallTimeout connectTimeout maxConcurrent tempDir"},
	{"server/artifacts.TestEachAccountSettingCounts", "artifacts.network.", "allowedAddresses deniedAddresses"},
	{"server/artifacts.TestArtifactStoreSettings", "artifact-store.", "type"},
	{"server/artifacts.TestArtifactStoreSettings", "artifact-store.s3.", "bucket region url accessKey secretKey profile forcePathStyle"},
}

// ownDecoding has the tests with wrong values of the types that decode themselves.
var ownDecoding = map[string]string{
	"list or map of roles":  "agent/config.TestUnreadablePermissionsRejectTheAccount",
	"path or list of paths": "internal/configfile.TestImportsMustBePaths",
	"map of groups":         "server/config.TestConnectionPoolProblems",
}

const optionsIntro = `# Options and their tests

<!-- Generated by go test ./docs -update -->

Each option has a test that sets it and checks what becomes of it, and a test that gives it values of a wrong type, range or unit. This
page lists them. An option without both fails ` + "`go test ./docs`" + `. The meaning of the options is in the references of
[the agent](config-agent.md) and of [the server](config-server.md).
`

// TestOptionsAreTested checks that options-tested.md names two tests for each option, and that the tests
// exist and mention the option.
func TestOptionsAreTested(t *testing.T) {
	page := optionsIntro + optionsTable(t, "Agent", "agent/config", agentconfig.Config{}, agentOptions) +
		optionsTable(t, "Server", "server/config", serverconfig.Config{}, serverOptions)
	golden.Compare(t, "options-tested.md", page)
}

// optionsTable returns the table of a program. Its package of the configuration has TestWrongValuesAreReported.
func optionsTable(t *testing.T, title, dir string, config any, options []tested) string {
	var out strings.Builder
	out.WriteString("\n## " + title + "\n\n| option | effect | wrong values |\n|---|---|---|\n")
	sources, unused := testSources{}, map[string]bool{}
	for _, o := range slices.Concat(sharedOptions, options) {
		for name := range strings.FieldsSeq(o.names) {
			unused[o.prefix+name] = true
		}
	}
	for _, key := range configfile.Keys(config) {
		if key.Type == "" || key.Status != configfile.ActiveKey {
			continue
		}
		effect := effectTest(t, key, slices.Concat(sharedOptions, options), unused)
		sources.check(t, effect, key)
		wrong := dir + ".TestWrongValuesAreReported"
		if !configtest.HasWrongValues(key.Type) {
			wrong = ownDecoding[key.Type]
			sources.check(t, wrong, key)
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", key.Path, effect, wrong)
	}
	for pattern := range unused {
		t.Errorf("%s: %s is not an option: remove it from this test", title, pattern)
	}
	return out.String()
}

// effectTest returns the only test of a key, and removes what names it from unused.
func effectTest(t *testing.T, key configfile.Key, options []tested, unused map[string]bool) (test string) {
	for _, o := range options {
		for name := range strings.FieldsSeq(o.names) {
			if !matchesPattern(o.prefix+name, key.Path) {
				continue
			}
			if test != "" {
				t.Errorf("%s: both %s and %s are named as its test", key.Path, test, o.test)
			}
			test = o.test
			delete(unused, o.prefix+name)
		}
	}
	if test == "" {
		t.Errorf("%s has no test: write one that sets it and checks what becomes of it, and name it in this test", key.Path)
	}
	return test
}

func matchesPattern(pattern, path string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == path
	}
	return slices.EqualFunc(strings.Split(pattern, "."), strings.Split(path, "."), func(p, s string) bool { return p == "*" || p == s })
}

// testSources are the files of tests, by "package.Test".
type testSources map[string]string

// check checks that a test exists, and that its file mentions a key.
func (s testSources) check(t *testing.T, test string, key configfile.Key) {
	t.Helper()
	if test == "" {
		t.Errorf("%s: nothing tests wrong values of the type %q", key.Path, key.Type)
		return
	}
	if _, isKnown := s[test]; !isKnown {
		s[test] = findTest(t, test)
	}
	segments := strings.Split(strings.ReplaceAll(key.Path, "[]", ""), ".")
	last := segments[len(segments)-1]
	if s[test] != "" && !regexp.MustCompile(`\b`+regexp.QuoteMeta(last)+`\b`).MatchString(s[test]) {
		t.Errorf("%s: the file with %s does not mention %s", key.Path, test, last)
	}
}

// findTest returns the file with a test.
func findTest(t *testing.T, test string) string {
	t.Helper()
	dot := strings.LastIndex(test, ".")
	files, err := filepath.Glob(filepath.Join("..", test[:dot], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\nfunc "+test[dot+1:]+"(t *testing.T) {") {
			return string(source)
		}
	}
	t.Errorf("the test %s does not exist", test)
	return ""
}
