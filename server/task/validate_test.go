package task_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
)

func TestOperationsAreValidatedAsByClouddriver(t *testing.T) {
	const (
		invalid  = "com.netflix.spinnaker.clouddriver.deploy.DescriptionValidationException"
		unknown  = "com.netflix.spinnaker.clouddriver.orchestration.AtomicOperationConverterNotFoundException"
		argument = "java.lang.IllegalArgumentException"
	)
	for _, tt := range []struct {
		name, path, body string
		exception        string
		want             string // the errors, or a part of the message
	}{
		{"no account", "", `[{"scaleManifest":{"manifestName":"deployment web","location":"shop","replicas":1}}]`, invalid, "scaleKubernetesManifest.scaleKubernetesManifest.account.empty"},
		{"an account that is null", "", `[{"deployManifest":{"account":null,"manifests":[]}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.account.empty"},
		{"an operation without validation and without account", "", `[{"cleanupArtifacts":{"manifests":[]}}]`, argument, "cleanupArtifacts has no account"},
		{"an unknown account", "", `[{"scaleManifest":{"account":"nowhere","manifestName":"deployment web","location":"shop","replicas":1}}]`, argument, "credentials not found (name: nowhere)"},
		{"another namespace than the account's", "", `[{"scaleManifest":{"account":"narrow","manifestName":"deployment web","location":"kube-system","replicas":1}}]`, invalid, "scaleKubernetesManifest.scaleKubernetesManifest.kube-system.wrongNamespace"},
		{"a namespace that the account omits", "", `[{"pauseRolloutManifest":{"account":"without","manifestName":"deployment web","location":"kube-system"}}]`, invalid, "pauseRolloutKubernetesManifest.pauseRolloutKubernetesManifest.kube-system.omittedNamespace"},
		{"resume", "", `[{"resumeRolloutManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}}]`, invalid, "resumeRolloutKubernetesManifest.resumeRolloutKubernetesManifest.x.wrongNamespace"},
		{"restart", "", `[{"rollingRestartManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}}]`, invalid, "rollingRestartKubernetesManifest.rollingRestartKubernetesManifest.x.wrongNamespace"},
		{"enable", "", `[{"enableManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}}]`, invalid, "enableKubernetesManifest.enableKubernetesManifest.x.wrongNamespace"},
		{"disable", "", `[{"disableManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}}]`, invalid, "disableKubernetesManifest.disableKubernetesManifest.x.wrongNamespace"},
		{"delete by labels", "", `[{"deleteManifest":{"account":"narrow","kinds":["pod"],"location":"x"}}]`, invalid, "deleteKubernetesManifest.deleteKubernetesManifest.x.wrongNamespace"},
		{"undo without a revision", "", `[{"undoRolloutManifest":{"account":"prod","manifestName":"deployment web","location":"shop","revision":null,"numRevisionsBack":""}}]`, invalid, "undoRolloutKubernetesManifest.undoRolloutKubernetesManifest.numRevisionsBack & revision.empty"},
		{"resize without replicas", "", `[{"resizeServerGroup":{"account":"prod","serverGroupName":"deployment web","region":"shop","capacity":{}}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.capacity.empty"},
		{"an empty patch", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":null,"options":{"mergeStrategy":"json"}}}]`, invalid, "patchKubernetesManifest.patchKubernetesManifest.patchBody.empty"},
		{"a patch without a strategy", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":{}}}]`, invalid, "patchKubernetesManifest.patchKubernetesManifest.options.mergeStrategy.empty"},
		{"a patch with an unknown strategy", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":{},"options":{"mergeStrategy":"replace"}}}]`, argument, "must be strategic, merge or json"},
		{"a list as a merge patch", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":[],"options":{"mergeStrategy":"merge"}}}]`, argument, "must be an object"},
		{"a text as a json patch", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":"hunter2","options":{"mergeStrategy":"json"}}}]`, argument, "must be a list of operations"},
		{"a manifest in a wrong namespace", "", `[{"deployManifest":{"account":"narrow","manifests":[{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}},{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"other"}},{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"third"}}]}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.other.wrongNamespace"},
		{"a manifest in a list in a wrong namespace", "", `[{"deployManifest":{"account":"narrow","manifests":[{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"other"}}]}]}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.other.wrongNamespace"},
		{"a wrong override of the namespace", "", `[{"deployManifest":{"account":"narrow","namespaceOverride":"other","manifests":[]}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.other.wrongNamespace"},
		{"no manifests", "", `[{"deployManifest":{"account":"prod"}}]`, argument, "no manifests"},
		{"a manifest without a kind", "", `[{"deployManifest":{"account":"prod","manifests":[null,{"kind":"Pod","metadata":{}},{"apiVersion":"v1","metadata":{"name":"hunter2"},"data":{"a":"hunter2"}}]}}]`, argument, "Missing required field 'kind' on manifest 2 of 2"},
		{"a manifest whose kind is null", "", `[{"deployManifest":{"account":"prod","manifests":[{"kind":null,"metadata":{"name":"a"}}]}}]`, argument, "Missing required field 'kind' on manifest 1 of 1"},
		{"a manifest without metadata", "", `[{"deployManifest":{"account":"prod","manifests":[{"kind":"Pod","apiVersion":"v1"}]}}]`, argument, "Missing required field 'metadata' on manifest 1 of 1, of kind Pod"},
		{"a manifest whose namespace is a number", "", `[{"deployManifest":{"account":"prod","manifests":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":5}}]}}]`, argument, "metadata.namespace on manifest 1 of 1, of kind Pod, must be a string"},
		{"a rollout strategy in lower case", "", `[{"deployManifest":{"account":"prod","strategy":"red_black","manifests":[]}}]`, argument, "strategy of the description must be one of RED_BLACK, BLUE_GREEN, HIGHLANDER, NONE, in this case"},
		{"a patch strategy in upper case", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":{},"options":{"mergeStrategy":"JSON"}}}]`, argument, "must be strategic, merge or json, in lower case"},
		{"an option that is neither true nor false", "", `[{"deployManifest":{"account":"prod","versioned":"hunter2","manifests":[]}}]`, argument, "not a boolean"},
		{"one of an unknown account after one that is right", "", scaleWeb[:len(scaleWeb)-1] + `,{"scaleManifest":{"account":"nowhere","manifestName":"deployment web","location":"shop","replicas":1}}]`, argument, "credentials not found (name: nowhere)"},
		{"one in a wrong namespace after one that is right", "", scaleWeb[:len(scaleWeb)-1] + `,{"scaleManifest":{"account":"narrow","manifestName":"deployment web","location":"x","replicas":1}}]`, invalid, "scaleKubernetesManifest.scaleKubernetesManifest.x.wrongNamespace"},
		{"an unknown operation after one that is right", "", scaleWeb[:len(scaleWeb)-1] + `,{"upsertLoadBalancer":{"account":"prod"}}]`, unknown, `Unknown operation "upsertLoadBalancer"`},
		{"a job without a manifest", "", `[{"runJob":{"account":"prod"}}]`, argument, "no manifest"},
		{"all errors at once, without duplicates", "", `[{"scaleManifest":{"account":"narrow","manifestName":"deployment web","location":"x","replicas":1}},{"enableManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}},{"enableManifest":{"account":"narrow","manifestName":"deployment api","location":"x"}}]`,
			invalid, "enableKubernetesManifest.enableKubernetesManifest.x.wrongNamespace, scaleKubernetesManifest.scaleKubernetesManifest.x.wrongNamespace"},
		{"a name without a kind", "", `[{"enableManifest":{"account":"prod","manifestName":"web","location":"shop"}}]`, argument, "Expected a full resource name of the form <kind> <name>, got: web"},
		{"a name with a space at its end", "", `[{"deleteManifest":{"account":"prod","manifestName":"clusterRole web "}}]`, argument, "Expected a full resource name of the form <kind> <name>, got: clusterRole web "},
		{"a name with a space at its begin", "", `[{"deleteManifest":{"account":"prod","manifestName":"clusterRole  web"}}]`, argument, "Expected a full resource name of the form <kind> <name>, got: clusterRole  web"},
		{"a name without a kind, but with a space", "", `[{"deleteManifest":{"account":"prod","manifestName":" web"}}]`, argument, "Expected a full resource name of the form <kind> <name>, got:  web"},
		{"replicas that are not a number", "", `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":"hunter2"}}]`, argument, "replicas of the description is invalid: it must be a whole number"},
		{"replicas with a fraction", "", `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":1.5}}]`, argument, "replicas of the description is invalid: it must be a whole number"},
		{"options that are not an object", "", `[{"deleteManifest":{"account":"prod","manifestName":"deployment web","options":17}}]`, argument, "options of the description is invalid: it is of type number"},
		{"invalid label selectors", "", `[{"deleteManifest":{"account":"prod","kinds":["pod"],"labelSelectors":{"selectors":[{"kind":"LIKES","key":"a"}]}}}]`, argument, "LIKES"},
		{"a description that is not an object", "", `[{"scaleManifest":["hunter2"]}]`, argument, "the description of the operation must be an object"},
		{"a description that is null", "", `[{"scaleManifest":null}]`, argument, "the description of the operation must be an object"},
		{"an unknown operation", "", `[{"upsertLoadBalancer":{"account":"prod"}}]`, unknown, `Unknown operation "upsertLoadBalancer"`},
		{"another provider in the path", "/aws/ops", scaleWeb, unknown, `for cloud provider "aws"`},
		{"another provider in the description", "/ops", `[{"scaleManifest":{"account":"prod","cloudProvider":"aws","manifestName":"deployment web","location":"shop","replicas":3}}]`, unknown, `for cloud provider "aws"`},
		{"no list", "", `{"scaleManifest":{"hunter2":1}}`, argument, "the body must be a list of operations"},
		{"null", "", `null`, argument, "the body must be a list of operations"},
		{"a list of other things", "", `["hunter2"]`, argument, "must be an object with an operation"},
		{"nothing", "", ``, argument, "the body is empty"},
		{"an incomplete body", "", scaleWeb[:40], argument, "unexpected end at byte 35"},
		{"data after the body", "", scaleWeb + "hunter2", argument, "data after the document at byte 101"},
		{"invalid JSON", "", `[{"scaleManifest":{hunter2}}]`, argument, "syntax error or unexpected end at byte 19"},
		{"invalid JSON for one operation", "/kubernetes/ops/scaleManifest", `{hunter2}`, argument, "syntax error or unexpected end at byte 1"},
		{"a list for one operation", "/kubernetes/ops/scaleManifest", scaleWeb, argument, "the description of the operation must be an object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			memory := newMemoryStore()
			s := newServer(task.Config{Store: memory})
			path := tt.path
			if path == "" {
				path = "/kubernetes/ops"
			}
			code, response := s.request(t, http.MethodPost, path, tt.body)
			var b struct {
				Status                    int
				Error, Exception, Message string
				Errors                    []string
			}
			if err := json.Unmarshal([]byte(response), &b); err != nil || code != http.StatusBadRequest || b.Status != code || b.Error != "Bad Request" {
				t.Fatalf("got %d %s, want %d", code, response, http.StatusBadRequest)
			}
			if b.Exception != tt.exception {
				t.Errorf("got exception %s", b.Exception)
			}
			if got := strings.Join(b.Errors, ", "); tt.exception == invalid && (got != tt.want || b.Message != "Validation Failed") {
				t.Errorf("got %q and %q", b.Message, got)
			}
			if tt.exception != invalid && (!strings.Contains(b.Message, tt.want) || b.Errors != nil) {
				t.Errorf("got %q and %q", b.Message, b.Errors)
			}
			if strings.Contains(response, "hunter2") {
				t.Errorf("the response quotes the request: %s", response)
			}
			if len(memory.rows) != 0 || s.cluster.count() != 0 {
				t.Error("got a task, want none")
			}
		})
	}
}

// TestDescriptionsAreDecodedLikeClouddriver submits the descriptions in testdata/descriptions, for a caller without permissions, so that
// nothing starts.
func TestDescriptionsAreDecodedLikeClouddriver(t *testing.T) {
	for file, isRejected := range map[string]bool{"rejected.txt": true, "accepted.txt": false} {
		content, err := os.ReadFile(filepath.Join("testdata", "descriptions", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			name, description, ok := strings.Cut(strings.TrimSpace(line), " ")
			if !ok || name == "#" {
				continue
			}
			s := newServer(task.Config{})
			_, err := s.Submit(t.Context(), []task.Request{{Name: name, Description: json.RawMessage(description)}},
				task.Options{Provider: "kubernetes", MayWrite: denyAll})
			isDecoded := err != nil && err.Error() == "Validation Failed: Access denied to account prod"
			if isDecoded == isRejected || vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%s %s: got %v, want rejected: %t", name, description, err, isRejected)
			}
			if s.cluster.count() != 0 {
				t.Errorf("%s %s: got an operation in the cluster, want none", name, description)
			}
		}
	}
}

func TestWriteAccessIsChecked(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		kind vedette.ErrorKind
		want string
	}{
		{"denied", vedette.Errorf(vedette.Denied, "ann is not among ops"), vedette.Invalid, "Validation Failed: Access denied to account prod"},
		{"the permission is unknown", vedette.Errorf(vedette.Unavailable, "Fiat does not answer"), vedette.Unavailable, "Fiat does not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(task.Config{})
			requests, err := task.ParseRequests([]byte(scaleWeb))
			if err != nil {
				t.Fatal(err)
			}
			id, err := s.Submit(t.Context(), requests, task.Options{MayWrite: func(_ context.Context, account vedette.AccountName) error {
				if account != "prod" {
					t.Errorf("got a check of %s", account)
				}
				return tt.err
			}})
			if id != "" || s.cluster.count() != 0 || vedette.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got task %q, %v", id, err)
			}
		})
	}
}

func FuzzParseRequests(f *testing.F) {
	f.Add([]byte(scaleWeb))
	f.Add([]byte(deployThree))
	f.Add([]byte(`[{"a":{},"b":null},{}]`))
	f.Add([]byte(`[[]]`))
	f.Add([]byte(`[{"patchManifest":{"account":"prod","patchBody":[],"options":{"mergeStrategy":"json"},"requiredArtifacts":[null]}}]`))
	f.Add([]byte(`[{"deleteManifest":{"account":"prod","kinds":[null,1],"options":{"cascading":true}}}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		requests, err := task.ParseRequests(raw)
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("got %v, want an error of the kind Invalid", err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Errorf("%q: got no error for invalid JSON", raw)
		}
		for _, r := range requests {
			if !json.Valid(r.Description) {
				t.Errorf("got description %q", r.Description)
			}
		}
		// Parsed requests must be rejected with a public error.
		_, err = newServer(task.Config{}).Submit(t.Context(), requests, task.Options{Provider: "kubernetes", MayWrite: denyAll})
		if err != nil && vedette.KindOf(err) == "" {
			t.Errorf("%s: got %v, want a public error", raw, err)
		}
	})
}

// denyAll denies everything, so that no task starts.
func denyAll(context.Context, vedette.AccountName) error {
	return vedette.Errorf(vedette.Denied, "nobody")
}

// TestRestartNeedsAccessToOriginalAccounts checks that a task cannot be restarted with
// operations on other accounts, without access to its own.
func TestRestartNeedsAccessToOriginalAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{})
		s.cluster.do = waitUntilCanceled
		id := s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		if err := s.Cancel(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), id)
		if err != nil || len(got.Accounts) != 1 || got.Accounts[0] != "prod" {
			t.Errorf("got accounts %q, %v", got.Accounts, err)
		}
		options := task.Options{RequestID: "1", MayWrite: func(_ context.Context, account vedette.AccountName) error {
			if account == "lab" {
				return nil
			}
			return vedette.Errorf(vedette.Denied, "not %s", account)
		}}
		if err := s.Restart(t.Context(), id, nil, options); vedette.KindOf(err) != vedette.Denied {
			t.Errorf("restart: got %v", err)
		}
		if _, err := s.Submit(t.Context(), nil, options); vedette.KindOf(err) != vedette.Denied {
			t.Errorf("submitted with its request ID: got %v", err)
		}
		options.MayWrite = nil
		if err := s.Restart(t.Context(), id, nil, options); err != nil {
			t.Errorf("with access: got %v", err)
		}
		synctest.Wait()
		got, err = s.Get(t.Context(), id)
		if err != nil || len(got.Accounts) != 1 {
			t.Errorf("got accounts %q, %v, want the previous ones too", got.Accounts, err)
		}
	})
}
