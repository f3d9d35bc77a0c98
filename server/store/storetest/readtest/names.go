package readtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Names are tests that tell similar names apart.
var Names = map[string]func(*testing.T, *store.Store){
	"objects": testObjectNames, "an object among similar ones is deleted": testDeleteAmongSimilarNames, "namespaces": testNamespaceNames,
	"accounts": testAccountNames,
	"kinds":    testKindNames, "labels": testLabelNames, "pages": testPagesOfNames,
	"names that nothing has": testOtherNames,
}

// bodyOf returns the body of an object, which says whose it is.
func bodyOf(name string) []byte {
	body, _ := json.Marshal(map[string]any{"metadata": map[string]string{"name": name}}) // strings can be encoded
	return body
}

func similarObjects(kind vedette.Kind, namespace string) []vedette.Object {
	var objects []vedette.Object
	for i, name := range storetest.SimilarNames() {
		o := storetest.Object(kind, namespace, name, fmt.Sprint(i+1))
		o.Body = bodyOf(name)
		objects = append(objects, o)
	}
	return objects
}

// namesOf returns the names of an account's objects, and checks that each has its own body.
func namesOf(t *testing.T, s *store.Store, q read.Query) []string {
	t.Helper()
	q.Bodies = true
	var names []string
	for _, row := range storetest.QueryAll(t, s, q) {
		names = append(names, row.Name)
		if string(row.Body) != string(bodyOf(row.Name)) {
			t.Errorf("%q has the body %s of another object", row.Name, row.Body)
		}
	}
	return names
}

// testObjectNames writes all objects in one commit, and each again in one of its own.
func testObjectNames(t *testing.T, s *store.Store) {
	w := storetest.NewWriter(t, s, "prod")
	w.Put(similarObjects(storetest.Roles, "")...)
	storetest.Equal(t, "after one commit", namesOf(t, s, read.Query{}), slices.Sorted(slices.Values(storetest.SimilarNames())))
	for _, o := range similarObjects(storetest.Roles, "") {
		o.ResourceVersion += "0"
		w.Put(o)
	}
	storetest.Equal(t, "after a commit for each", namesOf(t, s, read.Query{}), slices.Sorted(slices.Values(storetest.SimilarNames())))
	for _, name := range storetest.SimilarNames() {
		storetest.Equal(t, "the query for one name", namesOf(t, s, read.Query{Name: name}), []string{name})
	}
}

func testDeleteAmongSimilarNames(t *testing.T, s *store.Store) {
	w := storetest.NewWriter(t, s, "prod")
	w.Put(similarObjects(storetest.Roles, "")...)
	remaining := slices.Sorted(slices.Values(storetest.SimilarNames()))
	for _, name := range storetest.SimilarNames() {
		w.Commit(commit.Batch{Deletes: storetest.Deletions(vedette.Key{Kind: storetest.Roles, Name: name})})
		remaining = slices.DeleteFunc(remaining, func(n string) bool { return n == name })
		storetest.Equal(t, fmt.Sprintf("after %q is deleted", name), namesOf(t, s, read.Query{}), remaining)
	}
}

func testNamespaceNames(t *testing.T, s *store.Store) {
	w := storetest.NewWriter(t, s, "prod")
	for _, namespace := range storetest.SimilarNames() {
		o := storetest.Object(storetest.Pods, namespace, "web", "1")
		o.Body = bodyOf("web")
		w.Put(o)
	}
	for _, namespace := range storetest.SimilarNames() {
		storetest.Equal(t, "the query for one namespace", namesOf(t, s, read.Query{Namespace: namespace}), []string{"web"})
	}
	w.Commit(commit.Batch{Deletes: storetest.Deletions(vedette.Key{Kind: storetest.Pods, Namespace: "pad ", Name: "web"})})
	storetest.Equal(t, "after the object of another namespace is deleted", namesOf(t, s, read.Query{Namespace: "pad"}), []string{"web"})
}

// testAccountNames registers accounts whose names are similar, but not to Spinnaker's services.
func testAccountNames(t *testing.T, s *store.Store) {
	names := []string{"pad", "pad-", "pa d", "pad's", "pad%", "pad_", "pad\\", "i", "k", "ae", "a\u0308e-"}
	for _, name := range names {
		w := storetest.NewWriter(t, s, vedette.AccountName(name))
		o := storetest.Object(storetest.Pods, "shop", "of "+name, "1")
		o.Body = bodyOf(o.Name)
		w.Put(o)
	}
	accounts, err := s.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range accounts {
		got = append(got, string(a.Name))
	}
	storetest.Equal(t, "accounts", got, slices.Sorted(slices.Values(names)))
	for _, name := range names {
		storetest.Equal(t, "objects of one account", namesOf(t, s, read.Query{Accounts: []vedette.AccountName{vedette.AccountName(name)}}),
			[]string{"of " + name})
	}
	for _, name := range []vedette.AccountName{"pad ", "pad  ", " pad", "pAd", "pád"} {
		if _, err := s.Account(t.Context(), name); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("got %v for the account %q, want that it does not exist", err, name)
		}
	}
}

func testKindNames(t *testing.T, s *store.Store) {
	var feeds []vedette.Feed
	for _, name := range storetest.SimilarNames() {
		feeds = append(feeds, storetest.FeedOf(vedette.Kind{Group: "example.com", Name: name}), storetest.FeedOf(vedette.Kind{Group: name,
			Name: "Widget"}))
	}
	w := storetest.NewWriter(t, s, "prod", feeds...)
	for _, f := range feeds {
		o := storetest.Object(f.Kind, "shop", "of "+f.Kind.Group+"/"+f.Kind.Name, "1")
		o.Body = bodyOf(o.Name)
		w.Put(o)
	}
	for _, f := range feeds {
		storetest.Equal(t, "objects of one kind", namesOf(t, s, read.Query{Kinds: []vedette.Kind{f.Kind}}),
			[]string{"of " + f.Kind.Group + "/" + f.Kind.Name})
	}
}

// testLabelNames stores labels that Kubernetes would not take, too.
func testLabelNames(t *testing.T, s *store.Store) {
	w := storetest.NewWriter(t, s, "prod")
	for i, value := range storetest.SimilarNames() {
		o := storetest.Object(storetest.Pods, "shop", fmt.Sprintf("pod-%02d", i), "1")
		o.Labels, o.Body = map[string]string{"app": value, value: "x"}, bodyOf(o.Name)
		w.Put(o)
	}
	for text, want := range map[string][]string{"app=pad": {"pod-00"}, "app=PAD": {"pod-04"}, "pad": {"pod-00"}, "PAD=x": {"pod-04"},
		"app=pAd": nil} {
		storetest.Equal(t, "objects with "+text, namesOf(t, s, read.Query{Selector: text}), want)
	}
}

// testPagesOfNames reads each page with one object: the next page begins after its name.
func testPagesOfNames(t *testing.T, s *store.Store) {
	w := storetest.NewWriter(t, s, "prod")
	w.Put(similarObjects(storetest.Roles, "")...)
	storetest.Equal(t, "pages of one", namesOf(t, s, read.Query{Limit: 1}), slices.Sorted(slices.Values(storetest.SimilarNames())))
	storetest.Equal(t, "pages of two", namesOf(t, s, read.Query{Limit: 2}), slices.Sorted(slices.Values(storetest.SimilarNames())))
}

// testOtherNames asks for names that are too long, and ones that no database stores.
func testOtherNames(t *testing.T, s *store.Store) {
	w := storetest.NewWriter(t, s, "prod")
	long := strings.Repeat("x", 512)
	for _, name := range []string{long, "a\ufffd", "a\ufffdb"} {
		o := storetest.Object(storetest.Roles, "", name, "1")
		o.Body = bodyOf(name)
		w.Put(o)
	}
	for _, name := range []string{long + "x", "a\x00", "a\xff", "a\x00b", "a\xffb"} {
		storetest.Equal(t, "the query for one name", namesOf(t, s, read.Query{Name: name}), nil)
	}
}
