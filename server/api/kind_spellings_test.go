package api

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
)

// TestKindsOfTheHistory checks that operations are found by any name of their kind: what failed has the name that the request wrote.
func TestKindsOfTheHistory(t *testing.T) {
	resources := []vedette.Resource{{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}, Version: "v1", Plural: "replicasets", Singular: "replicaset", ShortNames: []string{"rs"}},
		{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Singular: "pod", ShortNames: []string{"po"}}}
	for _, name := range []string{"rs", "replicaset", "ReplicaSet.apps"} {
		got := kindsNamed(resources, name)
		for _, want := range []string{"ReplicaSet.apps", "ReplicaSet", "replicaSet", "replicaset", "replicasets", "replicasets.apps", "rs"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s: got %q, want %s among them", name, got, want)
			}
		}
		if slices.Contains(got, "Pod") || slices.Contains(got, "") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := kindsNamed(nil, "replicaset"); !slices.Contains(got, "replicaSet") { // no account has it any more
		t.Errorf("got %q", got)
	}
}

// TestManyKindsOfOneName lets the agent of an account report very many kinds with the short name of Deployments. The history must still be
// found by it in another account, and the error of all accounts must say what to do.
func TestManyKindsOfOneName(t *testing.T) {
	i := &accountfeeds.List{}
	hostile := &accountfeeds.Account{Name: "hostile"}
	for n := range 5000 {
		r := vedette.Resource{Kind: vedette.Kind{Group: fmt.Sprintf("g%d.example.com", n), Name: "Web"}, Plural: fmt.Sprintf("web%d", n), ShortNames: []string{"deploy"}}
		hostile.Feeds = append(hostile.Feeds, read.FeedStatus{Feed: vedette.Feed{Kind: r.Kind}, Resource: r})
		i.Resources = append(i.Resources, r)
	}
	i.Accounts = []*accountfeeds.Account{hostile, {Name: "prod"}}
	for _, tt := range []struct {
		accounts []vedette.AccountName
		object   string
		wantErr  bool
	}{
		{nil, "deploy/web", true},
		{nil, "deployment.apps/web", false},
		{[]vedette.AccountName{"prod"}, "deploy/web", false},
		{[]vedette.AccountName{"hostile", "prod"}, "deploy/web", true},
	} {
		q := history.Query{Accounts: tt.accounts}
		err := selectObject(i, tt.object, &q)
		if (err != nil) != tt.wantErr || err == nil && !slices.Contains(q.Kinds, "Deployment.apps") {
			t.Errorf("%s of %v: got %v and %d kinds", tt.object, tt.accounts, err, len(q.Kinds))
		}
		if err != nil && vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("got %v, want an error of the request", err)
		}
	}
}
