package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
)

// configMaps are the versions of one ConfigMap in a cluster. All deployments that ask for a version
// while a gate is closed get the same answer.
type configMaps struct {
	mu   sync.Mutex
	data []string // by version
}

func (c *configMaps) execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	time.Sleep(100 * time.Millisecond) // so that concurrent deployments read before any of them writes
	c.mu.Lock()
	defer c.mu.Unlock()
	switch a := op.Args.(type) {
	case vedette.VersionArgs:
		v := vedette.Version{Number: len(c.data)}
		if i := slices.Index(c.data, dataOf(a.Manifest)); i >= 0 {
			v = vedette.Version{Number: i, Exists: true}
		}
		result, _ := json.Marshal(v)
		return vedette.Outcome{State: vedette.Done, Result: result}
	case vedette.ApplyArgs:
		var m struct{ Metadata struct{ Name string } }
		_ = json.Unmarshal(a.Manifest, &m)
		var number int
		_, _ = fmt.Sscanf(m.Metadata.Name, "conf-v%d", &number)
		if number < len(c.data) && a.Strategy == vedette.StrategyCreateOnly {
			return vedette.Outcome{State: vedette.Failed, Status: 409, Reason: "AlreadyExists", Message: m.Metadata.Name + " already exists"}
		}
		for len(c.data) <= number {
			c.data = append(c.data, "")
		}
		c.data[number] = dataOf(a.Manifest)
		return vedette.Outcome{State: vedette.Done, Objects: []json.RawMessage{a.Manifest}}
	}
	return doneOutcome(op)
}

func dataOf(manifest []byte) string {
	var m struct{ Data map[string]string }
	_ = json.Unmarshal(manifest, &m)
	return m.Data["a"]
}

func deployConfigMap(value string) string {
	return `[{"deployManifest":{"account":"prod","moniker":{"app":"web"},"manifests":[
		{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf","namespace":"shop"},"data":{"a":"` + value + `"}}]}}]`
}

// TestConcurrentDeploymentsOfOneVersion deploys one versioned ConfigMap eight times at once, each with
// data of its own or shared with another, and checks that the object of each has the deployment's data.
func TestConcurrentDeploymentsOfOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cluster := newServer(task.Config{}), &configMaps{}
		s.cluster.do = cluster.execute
		ids := map[string]string{}
		for i := range 8 {
			value := fmt.Sprint(i / 2 * 2 * (i % 2)) // 0 four times, and 0, 2, 4, 6 once
			ids[s.post(t, "/kubernetes/ops", deployConfigMap(value))] = value
		}
		time.Sleep(time.Minute)
		for id, value := range ids {
			v := s.getTask(t, id)
			if v.Status.Failed || !v.Status.Completed {
				t.Errorf("the deployment of %s: got %+v, want a success", value, v.Status)
				continue
			}
			var number int
			if _, err := fmt.Sscanf(v.ResultObjects[0].ManifestNamesByNamespace["shop"][0], "configMap conf-v%d", &number); err != nil {
				t.Fatal(err)
			}
			if got := cluster.data[number]; got != value {
				t.Errorf("the deployment of %s: got %s in its version %d", value, got, number)
			}
		}
		if len(cluster.data) != 4 {
			t.Errorf("got the versions %v, want one of each data", cluster.data)
		}
	})
}

// TestTakenVersionsEndDeployment checks that a deployment ends, after a number of attempts or at its
// deadline, if each version that it chooses is taken.
func TestTakenVersionsEndDeployment(t *testing.T) {
	for _, tt := range []struct {
		name     string
		duration time.Duration // of an operation
		min, max int           // creations
		within   time.Duration
	}{
		{"attempts", 0, 20, 100, 0},
		{"deadline", 2 * time.Second, 6, 9, 34 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(task.Config{Timeout: 30 * time.Second})
				created := 0
				s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
					time.Sleep(tt.duration)
					if op.Args.Verb() != vedette.VerbApply {
						return doneOutcome(op)
					}
					created++
					return vedette.Outcome{State: vedette.Failed, Status: 409, Reason: "AlreadyExists", Message: "conf-v003 already exists"}
				}
				id := s.post(t, "/kubernetes/ops", deployConfigMap("1"))
				time.Sleep(tt.within + tt.duration)
				synctest.Wait()
				v := s.getTask(t, id)
				if !v.Status.Failed || !strings.Contains(v.Status.Status, "conf-v003 already exists") {
					t.Errorf("got %+v, want a failure that names the object", v.Status)
				}
				if created < tt.min || created > tt.max {
					t.Errorf("got %d creations, want %d to %d", created, tt.min, tt.max)
				}
			})
		})
	}
}
