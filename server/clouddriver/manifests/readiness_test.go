package manifests

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestReadinessFollowsTheStatus(t *testing.T) {
	const stableText = "stable available"
	unstable := func(message string) string { return "unstable(" + message + ") available" }
	failed := func(message string) string { return "stable available failed(" + message + ")" }
	conditions := func(list ...string) string {
		return `{"metadata":{"generation":2},"status":{"conditions":[` + strings.Join(list, ",") + `]}}`
	}
	const crd, custom = "CustomResourceDefinition.apiextensions.k8s.io", "CronTab.stable.example.com"
	for _, tt := range []struct{ name, kind, manifest, want string }{
		{"a new definition", crd, `{}`, unstable("Waiting for the custom resource definition to be established")},
		{"an established definition", crd, conditions(`{"type":"NamesAccepted","status":"True"}`, `{"type":"Established","status":"True"}`), stableText},
		{"a definition that is not established yet", crd, conditions(`{"type":"NamesAccepted","status":"True"}`, `{"type":"Established","status":"False"}`), unstable("Waiting for the custom resource definition to be established")},
		{"a definition whose names are taken", crd, conditions(`{"type":"NamesAccepted","status":"False","message":"\"ct\" is taken"}`, `{"type":"Established","status":"True"}`), failed(`"ct" is taken`)},
		{"names are taken, without a message", crd, conditions(`{"type":"NamesAccepted","status":"False"}`), failed("The names of the custom resource are taken")},

		{"a new API service", "APIService.apiregistration.k8s.io", `{}`, unstable("Waiting for the API service to be available")},
		{"an API service without endpoints", "APIService.apiregistration.k8s.io", conditions(`{"type":"Available","status":"False","message":"no endpoints"}`), unstable("no endpoints")},
		{"an available API service", "APIService.apiregistration.k8s.io", conditions(`{"type":"Available","status":"True","message":"all checks passed"}`), stableText},

		{"a pending claim", "PersistentVolumeClaim", `{"status":{"phase":"Pending"}}`, unstable("Waiting for the persistent volume claim to be bound")},
		{"a claim without a status", "PersistentVolumeClaim", `{}`, unstable("Waiting for the persistent volume claim to be bound")},
		{"a bound claim", "PersistentVolumeClaim", `{"status":{"phase":"Bound"}}`, stableText},
		{"a claim that lost its volume", "PersistentVolumeClaim", `{"status":{"phase":"Lost"}}`, failed("The persistent volume claim has lost its volume")},

		{"an available volume", "PersistentVolume", `{"status":{"phase":"Available"}}`, stableText},
		{"a released volume", "PersistentVolume", `{"status":{"phase":"Released"}}`, stableText},
		{"a pending volume", "PersistentVolume", `{"status":{"phase":"Pending"}}`, unstable("Waiting for the persistent volume to be available")},
		{"a failed volume", "PersistentVolume", `{"status":{"phase":"Failed","message":"no plugin"}}`, failed("no plugin")},
		{"a failed volume without a message", "PersistentVolume", `{"status":{"phase":"Failed"}}`, failed("The persistent volume has failed")},

		{"an active namespace", "Namespace", `{"status":{"phase":"Active"}}`, stableText},
		{"a terminating namespace", "Namespace", `{"status":{"phase":"Terminating"}}`, unstable("Waiting for the namespace to be deleted")},
		{"a namespace without a phase", "Namespace", `{}`, unstable("Waiting for the namespace to be active")},

		{"a Service within the cluster", "Service", `{"spec":{"type":"ClusterIP"},"status":{"loadBalancer":{}}}`, stableText},
		{"a Service without an address", "Service", `{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{}}}`, unstable("Waiting for the load balancer to get an address")},
		{"a Service with an address", "Service", `{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`, stableText},
		{"an Ingress without an address", "Ingress.networking.k8s.io", `{}`, unstable("Waiting for the load balancer to get an address")},
		{"an Ingress with an address", "Ingress.networking.k8s.io", `{"status":{"loadBalancer":{"ingress":[{"hostname":"lb.example.com"}]}}}`, stableText},

		{"a budget that no controller has observed", "PodDisruptionBudget.policy", `{"metadata":{"generation":1},"status":{}}`, unstable(waitGeneration)},
		{"a budget whose change is not observed yet", "PodDisruptionBudget.policy", `{"metadata":{"generation":2},"status":{"observedGeneration":1}}`, unstable(waitGeneration)},
		{"a budget whose change is observed", "PodDisruptionBudget.policy", `{"metadata":{"generation":2},"status":{"observedGeneration":2}}`, stableText},

		{"a custom object without a status", custom, `{"metadata":{"generation":2}}`, stableText},
		{"a custom object whose change is not observed yet", custom, `{"metadata":{"generation":2},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`, unstable(waitGeneration)},
		{"a custom object that is ready", custom, conditions(`{"type":"Synced","status":"False"}`, `{"type":"Ready","status":"True"}`), stableText},
		{"a custom object that is not ready", custom, conditions(`{"type":"Ready","status":"False","message":"no such image"}`), unstable("no such image")},
		{"Ready is Unknown", custom, conditions(`{"type":"Ready","status":"Unknown","reason":"Progressing"}`), unstable("Progressing")},
		{"not ready without a message", custom, conditions(`{"type":"Ready","status":"False"}`), unstable("Waiting for the custom resource to be ready")},
		{"a condition of an earlier generation", custom, conditions(`{"type":"Ready","status":"True","observedGeneration":1}`), unstable(waitGeneration)},
		{"Available counts without Ready", custom, conditions(`{"type":"Available","status":"False"}`), unstable("Waiting for the custom resource to be available")},
		{"Ready takes precedence over Available", custom, conditions(`{"type":"Available","status":"False"}`, `{"type":"Ready","status":"True"}`), stableText},
		{"reconciling", custom, conditions(`{"type":"Ready","status":"True"}`, `{"type":"Reconciling","status":"True","message":"step 2 of 3"}`), unstable("step 2 of 3")},
		{"no longer reconciling", custom, conditions(`{"type":"Reconciling","status":"False"}`), stableText},
		{"stalled", custom, conditions(`{"type":"Reconciling","status":"True"}`, `{"type":"Stalled","status":"True","reason":"QuotaExceeded"}`), failed("QuotaExceeded")},
		{"a custom object that is being deleted", custom, `{"metadata":{"deletionTimestamp":"2026-11-20T12:00:00Z"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, unstable("Waiting for the object to be deleted")},
		{"a ConfigMap has nothing to wait for", "ConfigMap", `{"data":{"a":"b"}}`, stableText},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := evaluate(vedette.ParseKind(tt.kind), []byte(tt.manifest), true)
			if got := s.text(); err != nil || got != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
			if s, err := evaluate(vedette.ParseKind(tt.kind), []byte(tt.manifest), false); err != nil || s != stable() {
				t.Errorf("without readiness: got %s, %v, want stable", s.text(), err)
			}
		})
	}
}

// TestReadinessKeepsClouddriverRules checks that readiness does not change the status of kinds
// with a rule of Clouddriver.
func TestReadinessKeepsClouddriverRules(t *testing.T) {
	s, err := evaluate(vedette.Kind{Name: "Pod"}, []byte(`{"metadata":{"deletionTimestamp":"x"},"status":{"phase":"Running"}}`), true)
	if err != nil || s != stable() {
		t.Errorf("got %s, %v, want stable", s.text(), err)
	}
}
