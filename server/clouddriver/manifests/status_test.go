package manifests

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestStatusFollowsTheWorkload(t *testing.T) {
	const stableText, noStatus = "stable available", "No status reported yet"
	tests := []struct{ name, kind, manifest, want string }{
		{"no Deployment status", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1}}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"the change is not observed yet", "Deployment.apps", `{"apiVersion":"apps/v1","metadata":{"generation":2},"status":{"observedGeneration":1}}`, "unstable(" + waitGeneration + ") available"},
		{"paused, and otherwise complete", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":0},"status":{"conditions":[{"type":"Progressing","reason":"DeploymentPaused","message":"is paused"}]}}`, "stable available paused(is paused)"},
		{"not available", "Deployment.apps", `{"apiVersion":"apps/v1","status":{"conditions":[{"type":"Available","status":"False","message":"too few"}]}}`, "unstable(too few) unavailable(too few)"},
		{"past the deadline", "Deployment.apps", `{"apiVersion":"apps/v1","status":{"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}}`, "stable available failed(Deployment exceeded its progress deadline)"},
		{"past the deadline, and unavailable", "Deployment.apps", `{"apiVersion":"apps/v1","status":{"conditions":[{"type":"Progressing","reason":"ProgressDeadlineExceeded"},{"type":"Available","status":"False","message":"too few"}]}}`, "unstable(too few) unavailable(too few) failed(Deployment exceeded its progress deadline)"},
		{"past the deadline, with pending replicas", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2},"status":{"updatedReplicas":2,"conditions":[{"type":"progressing","status":"False","reason":"progressdeadlineexceeded"}]}}`, "unstable(" + waitAvailable + ") available failed(Deployment exceeded its progress deadline)"},
		{"unavailable, with pending replicas", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2},"status":{"conditions":[{"type":"Available","status":"False","message":"too few"}]}}`, "unstable(Waiting for all replicas to be updated) unavailable(too few)"},
		{"the generation is checked first", "Deployment.apps", `{"apiVersion":"apps/v1","metadata":{"generation":1},"spec":{"replicas":2},"status":{"conditions":[{"type":"Progressing","reason":"ProgressDeadlineExceeded"}]}}`, "unstable(" + waitGeneration + ") available"},
		{"paused, with pending replicas", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1},"status":{"conditions":[{"type":"Progressing","status":"Unknown","reason":"DeploymentPaused","message":"is paused"}]}}`, "unstable(Waiting for all replicas to be updated) available paused(is paused)"},
		{"not updated", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3},"status":{"replicas":3,"updatedReplicas":2}}`, "unstable(Waiting for all replicas to be updated) available"},
		{"old replicas remain", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3},"status":{"replicas":4,"updatedReplicas":3}}`, "unstable(Waiting for old replicas to finish termination) available"},
		{"not all available", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3},"status":{"replicas":3,"updatedReplicas":3,"availableReplicas":2}}`, "unstable(" + waitAvailable + ") available"},
		{"not all ready", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3},"status":{"replicas":3,"updatedReplicas":3,"availableReplicas":3,"readyReplicas":2}}`, "unstable(" + waitReady + ") available"},
		{"a complete Deployment", "Deployment.apps", `{"apiVersion":"apps/v1","metadata":{"generation":7},"spec":{"replicas":3},"status":{"observedGeneration":7,"replicas":3,"updatedReplicas":3,"availableReplicas":3,"readyReplicas":3}}`, stableText},

		{"no ReplicaSet status", "ReplicaSet.apps", `{}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"labels are missing", "ReplicaSet.apps", `{"spec":{"replicas":1},"status":{}}`, "unstable(Waiting for all replicas to be fully-labeled) unavailable(Waiting for all replicas to be fully-labeled)"},
		{"replicas are not ready", "ReplicaSet.apps", `{"spec":{"replicas":1},"status":{"fullyLabeledReplicas":1}}`, "unstable(" + waitReady + ") unavailable(" + waitReady + ")"},
		{"replicas are not available", "ReplicaSet.apps", `{"spec":{"replicas":1},"status":{"fullyLabeledReplicas":1,"readyReplicas":1}}`, "unstable(" + waitAvailable + ") unavailable(" + waitAvailable + ")"},
		{"a ReplicaSet's change is not observed yet", "ReplicaSet.apps", `{"metadata":{"generation":1},"status":{}}`, "unstable(Waiting for replicaset spec update to be observed) available"},
		{"missing replicas count as 0", "ReplicaSet.apps", `{"status":{"replicas":1}}`, stableText},
		{"a complete ReplicaSet", "ReplicaSet.apps", `{"metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":2,"fullyLabeledReplicas":1,"readyReplicas":1,"availableReplicas":1}}`, stableText},
		{"a ReplicaSet of an old version", "ReplicaSet.extensions", `{"status":{}}`, stableText},

		{"no DaemonSet status", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"OnDelete"}}}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a complete DaemonSet", "DaemonSet.apps", `{"apiVersion":"apps/v1","metadata":{"generation":1},"spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3,"numberReady":3}}`, stableText},
		{"a DaemonSet's change is not observed yet", "DaemonSet.apps", `{"apiVersion":"apps/v1","metadata":{"generation":1},"status":{}}`, "unstable(" + waitGeneration + ") available"},
		{"a DaemonSet with OnDelete", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"OnDelete"}},"status":{"desiredNumberScheduled":3}}`, stableText},
		{"not scheduled", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":2}}`, "unstable(Waiting for all replicas to be scheduled) available"},
		{"not updated everywhere", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":2}}`, "unstable(Waiting for all updated replicas to be scheduled) available"},
		{"not available everywhere", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":2}}`, "unstable(" + waitAvailable + ") available"},
		{"not ready everywhere", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3,"numberReady":2}}`, "unstable(" + waitReady + ") available"},

		{"a StatefulSet with OnDelete and without a status", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3,"updateStrategy":{"type":"OnDelete"}}}`, stableText},
		{"no StatefulSet status", "StatefulSet.apps", `{"apiVersion":"apps/v1"}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a StatefulSet's change is not observed yet", "StatefulSet.apps", `{"apiVersion":"apps/v1","metadata":{"generation":3},"status":{"observedGeneration":2}}`, "unstable(" + waitGeneration + ") available"},
		{"a rolling update without a partition", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}}},"status":{"replicas":2,"readyReplicas":2,"updatedReplicas":1}}`, "unstable(Waiting for partitioned roll out to finish) available"},
		{"another strategy has no partition", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1,"updateStrategy":{"type":"RollingUpdate"}},"status":{"replicas":1,"readyReplicas":1,"updatedReplicas":1}}`, "unstable(Waiting for all updated replicas to be scheduled) available"},
		{"too few", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2},"status":{"replicas":1}}`, "unstable(Waiting for at least the desired replica count to be met) available"},
		{"too few ready replicas", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":1}}`, "unstable(Waiting for all updated replicas to be ready) available"},
		{"a partitioned roll out that is not complete", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}},"status":{"replicas":3,"readyReplicas":3,"updatedReplicas":1}}`, "unstable(Waiting for partitioned roll out to finish) available"},
		{"a partitioned roll out with a surplus replica", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}},"status":{"replicas":3,"readyReplicas":3,"updatedReplicas":2}}`, "unstable(Waiting for partitioned roll out to finish) available"},
		{"a complete partitioned roll out", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}},"status":{"replicas":3,"readyReplicas":3,"updatedReplicas":2}}`, "stable(Partitioned roll out complete) available"},
		{"nothing was updated yet", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}}},"status":{"replicas":1,"readyReplicas":1}}`, "unstable(Waiting for all updated replicas to be scheduled) available"},
		{"revisions differ", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"currentReplicas":1,"currentRevision":"a","updateRevision":"b"}}`, "unstable(Waiting for the updated revision to match the current revision) available"},
		{"a complete StatefulSet", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"currentReplicas":1,"currentRevision":"a","updateRevision":"a"}}`, stableText},

		{"no Job status", "Job.batch", `{"spec":{}}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a Job with one of several completions", "Job.batch", `{"spec":{"completions":2},"status":{"succeeded":1}}`, "unstable(Waiting for jobs to finish) available"},
		{"a Job that did not fail", "Job.batch", `{"status":{"conditions":[{"type":"Failed","status":"False"}]}}`, "unstable(Waiting for jobs to finish) available"},
		{"a complete Job with default completions", "Job.batch", `{"status":{"succeeded":1,"conditions":[{"type":"Failed","status":"True"}]}}`, stableText},
		{"a running Job", "Job.batch", `{"status":{"active":1}}`, "unstable(Waiting for jobs to finish) available"},
		{"a failed Job", "Job.batch", `{"status":{"conditions":[{"type":"Failed","status":"True","message":"too often"}]}}`, "stable available failed(too often)"},
		{"a complete Job", "Job.batch", `{"spec":{"completions":2},"status":{"succeeded":2}}`, stableText},
		{"a CronJob without a status", "CronJob.batch", `{}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a CronJob", "CronJob.batch", `{"status":{}}`, stableText},
		{"no Pod status", "Pod", `{}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a Pod without a phase", "Pod", `{"status":{}}`, "unstable(Pod phase is unknown) unavailable(Pod phase is unknown)"},
		{"a Pod in an unknown phase", "Pod", `{"status":{"phase":"Resting"}}`, "unstable(Pod phase is unknown) unavailable(Pod phase is unknown)"},
		{"a succeeded Pod", "Pod", `{"status":{"phase":"Succeeded"}}`, stableText},
		{"a pending Pod", "Pod", `{"status":{"phase":"Pending"}}`, "unstable(Pod is pending) unavailable(Pod is pending)"},
		{"a failed Pod is only unstable", "Pod", `{"status":{"phase":"Failed"}}`, "unstable(Pod has failed) unavailable(Pod has failed)"},
		{"a Pod in the phase Unknown", "Pod", `{"status":{"phase":"Unknown"}}`, "unstable(Pod phase is unknown) unavailable(Pod phase is unknown)"},
		{"a running Pod", "Pod", `{"status":{"phase":"Running"}}`, stableText},
		{"no autoscaler status", "HorizontalPodAutoscaler.autoscaling", `{}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a new autoscaler", "HorizontalPodAutoscaler.autoscaling", `{"status":{"desiredReplicas":3}}`, "unstable(Waiting for HPA to complete a scale up, current: 0 desired: 3) available"},
		{"an autoscaler at rest", "HorizontalPodAutoscaler.autoscaling", `{"status":{"currentReplicas":3,"desiredReplicas":3}}`, stableText},
		{"scaling up", "HorizontalPodAutoscaler.autoscaling", `{"status":{"currentReplicas":1,"desiredReplicas":3}}`, "unstable(Waiting for HPA to complete a scale up, current: 1 desired: 3) available"},
		{"scaling down", "HorizontalPodAutoscaler.autoscaling", `{"status":{"currentReplicas":3,"desiredReplicas":1}}`, "unstable(Waiting for HPA to complete a scale down, current: 3 desired: 1) available"},
		{"a Service, without a rule", "Service", `{}`, stableText},
		{"a custom Deployment has none either", "Deployment.example.com", `{}`, stableText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := evaluateStatus(vedette.ParseKind(tt.kind), []byte(tt.manifest))
			if got := s.text(); err != nil || got != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// TestOldWorkloadVersionsAreUnsupported checks the errors for workloads of old API versions.
func TestOldWorkloadVersionsAreUnsupported(t *testing.T) {
	for kind, want := range map[string]string{
		"Deployment.extensions": "No deployment is supported at api version extensions/v1beta1",
		"DaemonSet.extensions":  "No daemonSet is supported at api version extensions/v1beta1",
		"StatefulSet.apps":      "No statefulSet is supported at api version extensions/v1beta1",
	} {
		_, err := evaluateStatus(vedette.ParseKind(kind), []byte(`{"apiVersion":"extensions/v1beta1","status":{}}`))
		if vedette.KindOf(err) != vedette.Invalid || err.Error() != want {
			t.Errorf("%s: got %v, want %s", kind, err, want)
		}
	}
}

func (s manifestStatus) text() string {
	word := func(yes, no string, c condition) string {
		text := no
		if c.State {
			text = yes
		}
		if c.Message != "" {
			text += "(" + c.Message + ")"
		}
		return text
	}
	all := []string{word("stable", "unstable", s.Stable), word("available", "unavailable", s.Available), word("failed", "", s.Failed), word("paused", "", s.Paused)}
	return strings.Join(strings.Fields(strings.Join(all, " ")), " ")
}
