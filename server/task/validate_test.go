package task_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
)

func TestValidation(t *testing.T) {
	const (
		invalid  = "com.netflix.spinnaker.clouddriver.deploy.DescriptionValidationException"
		unknown  = "com.netflix.spinnaker.clouddriver.orchestration.AtomicOperationConverterNotFoundException"
		argument = "java.lang.IllegalArgumentException"
	)
	for _, tt := range []struct {
		why, path, body string
		exception       string
		want            string // the errors, or else what the message holds
	}{
		{"no account", "", `[{"scaleManifest":{"manifestName":"deployment web","location":"shop","replicas":1}}]`, invalid, "scaleKubernetesManifest.scaleKubernetesManifest.account.empty"},
		{"an account that is null", "", `[{"deployManifest":{"account":null,"manifests":[]}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.account.empty"},
		{"no account of what is not validated", "", `[{"cleanupArtifacts":{"manifests":[]}}]`, argument, "cleanupArtifacts names no account"},
		{"an unknown account", "", `[{"scaleManifest":{"account":"nowhere","manifestName":"deployment web","location":"shop","replicas":1}}]`, argument, "credentials not found (name: nowhere)"},
		{"another namespace than the account's", "", `[{"scaleManifest":{"account":"narrow","manifestName":"deployment web","location":"kube-system","replicas":1}}]`, invalid, "scaleKubernetesManifest.scaleKubernetesManifest.kube-system.wrongNamespace"},
		{"a namespace that the account leaves out", "", `[{"pauseRolloutManifest":{"account":"without","manifestName":"deployment web","location":"kube-system"}}]`, invalid, "pauseRolloutKubernetesManifest.pauseRolloutKubernetesManifest.kube-system.omittedNamespace"},
		{"resume", "", `[{"resumeRolloutManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}}]`, invalid, "resumeRolloutKubernetesManifest.resumeRolloutKubernetesManifest.x.wrongNamespace"},
		{"restart", "", `[{"rollingRestartManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}}]`, invalid, "rollingRestartKubernetesManifest.rollingRestartKubernetesManifest.x.wrongNamespace"},
		{"enable", "", `[{"enableManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}}]`, invalid, "enableKubernetesManifest.enableKubernetesManifest.x.wrongNamespace"},
		{"disable", "", `[{"disableManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}}]`, invalid, "disableKubernetesManifest.disableKubernetesManifest.x.wrongNamespace"},
		{"delete by labels", "", `[{"deleteManifest":{"account":"narrow","kinds":["pod"],"location":"x"}}]`, invalid, "deleteKubernetesManifest.deleteKubernetesManifest.x.wrongNamespace"},
		{"delete nothing", "", `[{"deleteManifest":{"account":"narrow","location":"shop"}}]`, invalid, "deleteKubernetesManifest.deleteKubernetesManifest.manifestName & kinds.empty"},
		{"undo to where", "", `[{"undoRolloutManifest":{"account":"prod","manifestName":"deployment web","location":"shop","revision":null,"numRevisionsBack":""}}]`, invalid, "undoRolloutKubernetesManifest.undoRolloutKubernetesManifest.numRevisionsBack & revision.empty"},
		{"scale to what", "", `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop"}}]`, invalid, "scaleKubernetesManifest.scaleKubernetesManifest.replicas.empty"},
		{"resize to what, in the words of deploy", "", `[{"resizeServerGroup":{"account":"prod","serverGroupName":"deployment web","region":"shop","capacity":{}}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.capacity.empty"},
		{"an empty patch", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":null,"options":{"mergeStrategy":"json"}}}]`, invalid, "patchKubernetesManifest.patchKubernetesManifest.patchBody.empty"},
		{"a patch of which sort", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":{}}}]`, invalid, "patchKubernetesManifest.patchKubernetesManifest.options.mergeStrategy.empty"},
		{"a patch of a sort that there is not", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":{},"options":{"mergeStrategy":"replace"}}}]`, argument, "none of strategic, merge and json"},
		{"a list as a merge patch", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":[],"options":{"mergeStrategy":"merge"}}}]`, argument, "no object"},
		{"a text as a json patch", "", `[{"patchManifest":{"account":"prod","manifestName":"deployment web","location":"shop","patchBody":"hunter2","options":{"mergeStrategy":"json"}}}]`, argument, "no list of steps"},
		{"a manifest in a wrong namespace", "", `[{"deployManifest":{"account":"narrow","manifests":[{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}},{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"other"}},{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"third"}}]}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.other.wrongNamespace"},
		{"a manifest in a list in a wrong namespace", "", `[{"deployManifest":{"account":"narrow","manifests":[{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"other"}}]}]}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.other.wrongNamespace"},
		{"a wrong namespace for all", "", `[{"deployManifest":{"account":"narrow","namespaceOverride":"other","manifests":[]}}]`, invalid, "deployKubernetesManifest.deployKubernetesManifest.other.wrongNamespace"},
		{"no manifests", "", `[{"deployManifest":{"account":"prod"}}]`, argument, "no manifests"},
		{"a job without a manifest", "", `[{"runJob":{"account":"prod"}}]`, argument, "no manifest"},
		{"all faults at once, each once", "", `[{"scaleManifest":{"account":"narrow","manifestName":"deployment web","location":"x","replicas":1}},{"enableManifest":{"account":"narrow","manifestName":"deployment web","location":"x"}},{"enableManifest":{"account":"narrow","manifestName":"deployment api","location":"x"}}]`,
			invalid, "enableKubernetesManifest.enableKubernetesManifest.x.wrongNamespace, scaleKubernetesManifest.scaleKubernetesManifest.x.wrongNamespace"},
		{"a name without a kind", "", `[{"enableManifest":{"account":"prod","manifestName":"web","location":"shop"}}]`, argument, "Expected a full resource name of the form <kind> <name>, got: web"},
		{"replicas that are no number", "", `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":"hunter2"}}]`, argument, "replicas of the description can't be read: it must be a whole number"},
		{"replicas of a half", "", `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":1.5}}]`, argument, "replicas of the description can't be read: it must be a whole number"},
		{"options that are no object", "", `[{"deleteManifest":{"account":"prod","manifestName":"deployment web","options":17}}]`, argument, "options of the description can't be read: it is of type number"},
		{"labels that make no selector", "", `[{"deleteManifest":{"account":"prod","kinds":["pod"],"labelSelectors":{"selectors":[{"kind":"LIKES","key":"a"}]}}}]`, argument, "LIKES"},
		{"a description that is no object", "", `[{"scaleManifest":["hunter2"]}]`, argument, "the description of the operation is no object"},
		{"a description that is null", "", `[{"scaleManifest":null}]`, argument, "the description of the operation is no object"},
		{"an operation that nobody knows", "", `[{"upsertLoadBalancer":{"account":"prod"}}]`, unknown, `No operation "upsertLoadBalancer" is known`},
		{"another provider in the path", "/aws/ops", scaleWeb, unknown, `for cloud provider "aws"`},
		{"another provider in the description", "/ops", `[{"scaleManifest":{"account":"prod","cloudProvider":"aws","manifestName":"deployment web","location":"shop","replicas":3}}]`, unknown, `for cloud provider "aws"`},
		{"no list", "", `{"scaleManifest":{"hunter2":1}}`, argument, "the body is no list of operations"},
		{"null", "", `null`, argument, "the body is no list of operations"},
		{"a list of other things", "", `["hunter2"]`, argument, "no object that names an operation"},
		{"nothing", "", ``, argument, "the body is empty"},
		{"half of it", "", scaleWeb[:40], argument, "ends, at byte 40"},
		{"something after it", "", scaleWeb + "hunter2", argument, "broken, or ends, at byte 102"},
		{"what is no JSON", "", `[{"scaleManifest":{hunter2}}]`, argument, "broken, or ends, at byte 20"},
		{"what is no JSON, for one operation", "/kubernetes/ops/scaleManifest", `{hunter2}`, argument, "broken, or ends, at byte 2"},
		{"a list for one operation", "/kubernetes/ops/scaleManifest", scaleWeb, argument, "the description of the operation is no object"},
	} {
		t.Run(tt.why, func(t *testing.T) {
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
				t.Errorf("exception %s", b.Exception)
			}
			if got := strings.Join(b.Errors, ", "); tt.exception == invalid && (got != tt.want || b.Message != "Validation Failed") {
				t.Errorf("%q and %q", b.Message, got)
			}
			if tt.exception != invalid && (!strings.Contains(b.Message, tt.want) || b.Errors != nil) {
				t.Errorf("%q and %q", b.Message, b.Errors)
			}
			if strings.Contains(response, "hunter2") {
				t.Errorf("the answer repeats what was sent: %s", response)
			}
			if len(memory.rows) != 0 || s.cluster.count() != 0 {
				t.Error("something was begun")
			}
		})
	}
}

func TestWriteAccessIsChecked(t *testing.T) {
	for _, tt := range []struct {
		why  string
		err  error
		kind vedette.ErrorKind
		want string
	}{
		{"denied", vedette.Errorf(vedette.Denied, "ann is not among ops"), vedette.Invalid, "Validation Failed: Access denied to account prod"},
		{"nobody can tell", vedette.Errorf(vedette.Unavailable, "Fiat does not answer"), vedette.Unavailable, "Fiat does not answer"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			s := newServer(task.Config{})
			requests, err := task.ParseRequests([]byte(scaleWeb))
			if err != nil {
				t.Fatal(err)
			}
			id, err := s.Submit(t.Context(), requests, task.Options{MayWrite: func(_ context.Context, account vedette.AccountName) error {
				if account != "prod" {
					t.Errorf("asked for %s", account)
				}
				return tt.err
			}})
			if id != "" || s.cluster.count() != 0 || vedette.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("task %q, %v", id, err)
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
				t.Errorf("%v is not the caller's fault", err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Errorf("%q was read, and is no JSON", raw)
		}
		for _, r := range requests {
			if !json.Valid(r.Description) {
				t.Errorf("description %q", r.Description)
			}
		}
		// What is read is judged in words too.
		_, err = newServer(task.Config{}).Submit(t.Context(), requests, task.Options{Provider: "kubernetes", MayWrite: denyAll})
		if err != nil && vedette.KindOf(err) == "" {
			t.Errorf("%s: %v", raw, err)
		}
	})
}

// denyAll may do anything, so that nothing is begun.
func denyAll(context.Context, vedette.AccountName) error {
	return vedette.Errorf(vedette.Denied, "nobody")
}

// TestRestartNeedsAccessToOriginalAccounts holds that a task is not taken over with operations on
// an account of one's own.
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
			t.Errorf("accounts %q, %v", got.Accounts, err)
		}
		options := task.Options{RequestID: "1", MayWrite: func(_ context.Context, account vedette.AccountName) error {
			if account == "lab" {
				return nil
			}
			return vedette.Errorf(vedette.Denied, "not %s", account)
		}}
		if err := s.Restart(t.Context(), id, nil, options); vedette.KindOf(err) != vedette.Denied {
			t.Errorf("restart: %v", err)
		}
		if _, err := s.Submit(t.Context(), nil, options); vedette.KindOf(err) != vedette.Denied {
			t.Errorf("submitted under its request: %v", err)
		}
		options.MayWrite = nil
		if err := s.Restart(t.Context(), id, nil, options); err != nil {
			t.Errorf("who may: %v", err)
		}
		synctest.Wait()
		if got, err = s.Get(t.Context(), id); err != nil || len(got.Accounts) != 1 {
			t.Errorf("accounts %q, %v: those of before count too", got.Accounts, err)
		}
	})
}
