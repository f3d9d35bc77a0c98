// Code generated from the comments of the package by its test: go test -run TestReference -update. DO NOT EDIT.

package config

import "github.com/vedette-io/vedette/internal/configfile"

// reasons are why keys have no effect.
var reasons = configfile.Reasons{
	"clouddriver.auth.refreshIntervalSeconds":             "Was for tokens of the predecessor's cloud service, which no longer exists.",
	"clouddriver.keepAliveHeartbeatSeconds":               "The server's agents.heartbeatSeconds decides.",
	"clouddriver.keepAliveTimeOutSeconds":                 "Three missed heartbeats end a connection.",
	"clouddriver.keepAliveOperationSeconds":               "Heartbeats detect a dead connection, with or without operations.",
	"clouddriver.responseRetries":                         "Outcomes are sent again until the server acknowledges them.",
	"clouddriver.retries":                                 "Outcomes are sent again until the server acknowledges them.",
	"clouddriver.cacheRetryIntervalSeconds":               "The server assigns a free account to a waiting agent at once.",
	"clouddriver.dynamicAccountsEnabled":                  "Accounts come from files, not from the server.",
	"kubernetes.dynamicAccountsOnly":                      "Accounts come from files, not from the server.",
	"kubernetes.enabled":                                  "A switch of Clouddriver that users copy along; the agent always watches its accounts.",
	"kubernetes.serverSideApply.manifestDefaults":         "Removed fields are removed from the object without this help.",
	"kubernetes.serverSideApply.kinds[].manifestDefaults": "Removed fields are removed from the object without this help.",
	"kubernetes.accounts[].maxResumableResourceAgeMs":     "The API server decides which resourceVersions it still knows; the agent resumes from each of them, however old, and lists again only if the API server has forgotten it.",
	"kubernetes.accounts[].serviceAccountName":            "Appears in the predecessor's samples only; the pod's specification decides.",
	"kubernetes.accounts[].kubectlExecutable":             "The agent does not run kubectl.",
	"kubernetes.accounts[].kubectlRequestTimeoutSeconds":  "The agent does not run kubectl.",
	"kubernetes.accounts[].cachingPolicies":               "Memory and traffic do not depend on how many objects of a kind there are, so no limit is needed.",
	"kubernetes.accounts[].cacheThreads":                  "The agent watches and does not poll.",
	"kubernetes.accounts[].cacheIntervalSeconds":          "The agent watches and does not poll.",
	"kubernetes.accounts[].checkPermissionsOnStartup":     "The agent reports each kind that it may not read, and tries again.",
	"kubernetes.accounts[].namingStrategy":                "Applications always come from annotations and names.",
	"kubernetes.accounts[].providerVersion":               "Only version 2 of Clouddriver's provider still exists.",
	"kubernetes.accounts[].dockerRegistries":              "Belonged to version 1 of Clouddriver's provider.",
	"kubernetes.accounts[].configureImagePullSecrets":     "Belonged to version 1 of Clouddriver's provider.",
	"kubernetes.accounts[].liveManifestCalls":             "The store answers while the kind's feed is live; otherwise the server reads the manifest from the cluster.",
	"logging.remote":                                      "Sent log lines to the vendor of the predecessor.",
	"tasks.queueCheckFrequencyMs":                         "Waiting lists start as soon as they may; nothing polls the queue.",
	"dynamicAccounts":                                     "Accounts come from files: the agent uses a new entry, or a new file that spring.config.import names, within 5 seconds.",
	"local":                                               "An undocumented mode of the predecessor.",
	"hub":                                                 "The predecessor's cloud service no longer exists. Set clouddriver.grpc to the address of a server.",
	"spring.config.activate":                              "Profiles for which a further YAML document of a file applies. Only in such documents.",
	"spring.profiles":                                     "Profiles for which a further YAML document of a file applies, in an older form. Active profiles come from the environment only.",
}
