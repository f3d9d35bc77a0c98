package task_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/task"
)

// movingAccounts are accounts of one cluster, which another one replaces.
type movingAccounts struct {
	fakeAccounts
	cluster vedette.Cluster
}

func (a *movingAccounts) Account(ctx context.Context, name vedette.AccountName) (registry.Account, error) {
	row, err := a.fakeAccounts.Account(ctx, name)
	row.Cluster = a.cluster
	return row, err
}

// TestKindsBelongToAClusterAndAreAskedAgain deploys an object of a kind that no agent reports: what another cluster of the account served does
// not count, a kind that was just defined is found, and an agent that connects again is waited for.
func TestKindsBelongToAClusterAndAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accounts := &movingAccounts{cluster: vedette.Cluster{UID: "one"}}
		s := newServer(task.Config{Accounts: accounts})
		var asked, namespaces []string
		kind := func(scope bool) string {
			return fmt.Sprintf(`{"kinds":[{"kind":"Widget","group":"example.org","version":"v1","plural":"widgets","namespaced":%v}]}`, scope)
		}
		var mu sync.Mutex
		answer := map[string]string{"one": kind(true), "two": kind(false), "three": `{"kinds":[]}`}
		define := func(cluster string, namespaced bool) {
			mu.Lock()
			defer mu.Unlock()
			answer[cluster] = kind(namespaced)
		}
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			mu.Lock()
			defer mu.Unlock()
			switch a := op.Args.(type) {
			case vedette.DiscoverArgs:
				cluster := cmp.Or(op.Cluster.UID, accounts.cluster.UID)
				asked = append(asked, cluster)
				if answer[cluster] == "" {
					return vedette.Outcome{State: vedette.Failed, Status: 503, Message: "no agent has connected within 10s"}
				}
				return vedette.Outcome{State: vedette.Done, Status: 200, Result: json.RawMessage(answer[cluster])}
			case vedette.ApplyArgs:
				var m struct{ Metadata struct{ Namespace string } }
				if err := json.Unmarshal(a.Manifest, &m); err != nil {
					t.Error(err)
				}
				namespaces = append(namespaces, m.Metadata.Namespace)
			}
			return doneOutcome(op)
		}
		deploy := func(wait time.Duration, want string) {
			t.Helper()
			asked, namespaces = nil, nil
			id := s.post(t, "/kubernetes/ops", `[{"deployManifest":{"account":"loud","namespaceOverride":"shop","manifests":[
				{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"w"}},{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"x"}}]}}]`)
			time.Sleep(wait)
			synctest.Wait()
			status := s.getTask(t, id).Status
			if got := fmt.Sprintf("asked %s, namespaces %q, failed %v", strings.Join(asked, " "), namespaces, status.Failed); got != want {
				t.Errorf("got %s (%s), want %s", got, status.Status, want)
			}
		}
		deploy(2*time.Second, `asked one, namespaces ["shop" "shop"], failed false`)
		deploy(2*time.Second, `asked , namespaces ["shop" "shop"], failed false`)
		accounts.cluster.UID = "two"
		deploy(2*time.Second, `asked two, namespaces ["" ""], failed false`)
		accounts.cluster.UID = "three"
		deploy(2*time.Second, `asked three, namespaces ["shop" "shop"], failed false`) // as most kinds
		define("three", false)
		deploy(2*time.Second, `asked three, namespaces ["" ""], failed false`)
		accounts.cluster.UID = "four"
		time.AfterFunc(5*time.Second, func() { define("four", true) })
		deploy(time.Minute, `asked four four, namespaces ["shop" "shop"], failed false`)
		accounts.cluster.UID = "five"
		deploy(time.Minute, `asked five five five, namespaces [], failed true`)
	})
}
