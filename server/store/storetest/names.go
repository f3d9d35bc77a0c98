package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

var nameTests = map[string]func(*testing.T, *store.Store){
	"objects": testObjectNames, "an object among similar ones is deleted": testDeleteAmongSimilarNames, "namespaces": testNamespaceNames,
	"accounts": testAccountNames, "accounts that are rejected": testRejectedAccountNames,
	"accounts at the same moment": testAccountNamesAtTheSameMoment, "kinds": testKindNames, "labels": testLabelNames, "pages": testPagesOfNames,
	"operations and tasks": testNamesOfOperationsAndTasks, "names that nothing has": testOtherNames,
}

// similarNames are names that some database, language or form of Unicode takes for the same.
func similarNames() []string {
	return []string{
		"pad", "pad ", "pad  ", " pad", "PAD", "Pad", "pad\t", "pad\u00a0", "pad\u200b", "pád", "pa\u0301d", "ｐａｄ", "paď", "pa\u017fd", "pasd",
		"straße", "strasse", "STRASSE", "ı", "i", "I", "İ", "\u212a", "k", "K", "æ", "ae", "\U00010400", "\U00010428", "pad%", "pad_", "pad\\", "pad'",
	}
}

// bodyOf returns the body of an object, which says whose it is.
func bodyOf(name string) []byte {
	body, _ := json.Marshal(map[string]any{"metadata": map[string]string{"name": name}}) // strings can be encoded
	return body
}

func similarObjects(kind vedette.Kind, namespace string) []vedette.Object {
	var objects []vedette.Object
	for i, name := range similarNames() {
		o := object(kind, namespace, name, fmt.Sprint(i+1))
		o.Body = bodyOf(name)
		objects = append(objects, o)
	}
	return objects
}

// namesOf returns the names of an account's objects, and checks that each has its own body.
func namesOf(t *testing.T, s *store.Store, q store.Query) []string {
	t.Helper()
	q.Bodies = true
	var names []string
	for _, row := range queryAll(t, s, q) {
		names = append(names, row.Name)
		if string(row.Body) != string(bodyOf(row.Name)) {
			t.Errorf("%q has the body %s of another object", row.Name, row.Body)
		}
	}
	return names
}

// testObjectNames writes all objects in one commit, and each again in one of its own.
func testObjectNames(t *testing.T, s *store.Store) {
	w := newWriter(t, s, "prod")
	w.put(similarObjects(roles, "")...)
	equal(t, "after one commit", namesOf(t, s, store.Query{}), slices.Sorted(slices.Values(similarNames())))
	for _, o := range similarObjects(roles, "") {
		o.ResourceVersion += "0"
		w.put(o)
	}
	equal(t, "after a commit for each", namesOf(t, s, store.Query{}), slices.Sorted(slices.Values(similarNames())))
	for _, name := range similarNames() {
		equal(t, "the query for one name", namesOf(t, s, store.Query{Name: name}), []string{name})
	}
}

func testDeleteAmongSimilarNames(t *testing.T, s *store.Store) {
	w := newWriter(t, s, "prod")
	w.put(similarObjects(roles, "")...)
	remaining := slices.Sorted(slices.Values(similarNames()))
	for _, name := range similarNames() {
		w.commit(store.Batch{Deletes: deletions(vedette.Key{Kind: roles, Name: name})})
		remaining = slices.DeleteFunc(remaining, func(n string) bool { return n == name })
		equal(t, fmt.Sprintf("after %q is deleted", name), namesOf(t, s, store.Query{}), remaining)
	}
}

func testNamespaceNames(t *testing.T, s *store.Store) {
	w := newWriter(t, s, "prod")
	for _, namespace := range similarNames() {
		o := object(pods, namespace, "web", "1")
		o.Body = bodyOf("web")
		w.put(o)
	}
	for _, namespace := range similarNames() {
		equal(t, "the query for one namespace", namesOf(t, s, store.Query{Namespace: namespace}), []string{"web"})
	}
	w.commit(store.Batch{Deletes: deletions(vedette.Key{Kind: pods, Namespace: "pad ", Name: "web"})})
	equal(t, "after the object of another namespace is deleted", namesOf(t, s, store.Query{Namespace: "pad"}), []string{"web"})
}

// testAccountNames registers accounts whose names are similar, but not to Spinnaker's services.
func testAccountNames(t *testing.T, s *store.Store) {
	names := []string{"pad", "pad-", "pa d", "pad's", "pad%", "pad_", "pad\\", "i", "k", "ae", "a\u0308e-"}
	for _, name := range names {
		w := newWriter(t, s, vedette.AccountName(name))
		o := object(pods, "shop", "of "+name, "1")
		o.Body = bodyOf(o.Name)
		w.put(o)
	}
	accounts, err := s.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range accounts {
		got = append(got, string(a.Name))
	}
	equal(t, "accounts", got, slices.Sorted(slices.Values(names)))
	for _, name := range names {
		equal(t, "objects of one account", namesOf(t, s, store.Query{Accounts: []vedette.AccountName{vedette.AccountName(name)}}),
			[]string{"of " + name})
	}
	for _, name := range []vedette.AccountName{"pad ", "pad  ", " pad", "pAd", "pád"} {
		if _, err := s.Account(t.Context(), name); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("got %v for the account %q, want that it does not exist", err, name)
		}
	}
}

// testRejectedAccountNames registers names that are none, and names that Spinnaker's services take
// for an existing one.
func testRejectedAccountNames(t *testing.T, s *store.Store) {
	register(t, s, "pad")
	register(t, s, "Strict")
	for name, want := range map[vedette.AccountName]vedette.ErrorKind{
		"pad ": vedette.Invalid, " pad": vedette.Invalid, "pad\u00a0": vedette.Invalid, "pad\t": vedette.Invalid, "x,pad": vedette.Invalid, "pad;x": vedette.Invalid,
		"PAD": vedette.Conflict, "Pad": vedette.Conflict, "pád": vedette.Conflict, "pa\u0301d": vedette.Conflict, "ｐａｄ": vedette.Conflict,
		"pad\u200b": vedette.Conflict, "strıct": vedette.Conflict, "STRİCT": vedette.Conflict, "\u017ftrict": vedette.Conflict,
	} {
		_, err := s.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "of another cluster"}})
		if vedette.KindOf(err) != want || err == nil {
			t.Errorf("got %v for the account %q, want an error of kind %s", err, name, want)
		}
	}
	if row := register(t, s, "pad"); row.Name != "pad" {
		t.Errorf("got the account %q, want pad again", row.Name)
	}
}

// testAccountNamesAtTheSameMoment registers similar names at the same moment, as several agents do.
// One of them gets the account.
func testAccountNamesAtTheSameMoment(t *testing.T, s *store.Store) {
	for round := range 10 {
		names := []vedette.AccountName{"lab", "LAB", "Lab", "láb"}
		errs := make(chan error, len(names))
		for i, name := range names {
			go func() {
				_, err := s.Register(t.Context(), vedette.Account{Name: name + vedette.AccountName(strconv.Itoa(round)),
					Cluster: vedette.Cluster{UID: strconv.Itoa(i)}})
				errs <- err
			}()
		}
		registered := 0
		for range names {
			switch err := <-errs; {
			case err == nil:
				registered++
			case vedette.KindOf(err) != vedette.Conflict:
				t.Errorf("round %d: got %v, want a conflict", round, err)
			}
		}
		if registered != 1 {
			t.Errorf("round %d: got %d accounts with similar names, want 1", round, registered)
		}
	}
}

func testKindNames(t *testing.T, s *store.Store) {
	var feeds []vedette.Feed
	for _, name := range similarNames() {
		feeds = append(feeds, feedOf(vedette.Kind{Group: "example.com", Name: name}), feedOf(vedette.Kind{Group: name, Name: "Widget"}))
	}
	w := newWriter(t, s, "prod", feeds...)
	for _, f := range feeds {
		o := object(f.Kind, "shop", "of "+f.Kind.Group+"/"+f.Kind.Name, "1")
		o.Body = bodyOf(o.Name)
		w.put(o)
	}
	for _, f := range feeds {
		equal(t, "objects of one kind", namesOf(t, s, store.Query{Kinds: []vedette.Kind{f.Kind}}), []string{"of " + f.Kind.Group + "/" + f.Kind.Name})
	}
}

// testLabelNames stores labels that Kubernetes would not take, too.
func testLabelNames(t *testing.T, s *store.Store) {
	w := newWriter(t, s, "prod")
	for i, value := range similarNames() {
		o := object(pods, "shop", fmt.Sprintf("pod-%02d", i), "1")
		o.Labels, o.Body = map[string]string{"app": value, value: "x"}, bodyOf(o.Name)
		w.put(o)
	}
	for text, want := range map[string][]string{"app=pad": {"pod-00"}, "app=PAD": {"pod-04"}, "pad": {"pod-00"}, "PAD=x": {"pod-04"}, "app=pAd": nil} {
		equal(t, "objects with "+text, namesOf(t, s, store.Query{Selector: text}), want)
	}
}

// testPagesOfNames reads each page with one object: the next page begins after its name.
func testPagesOfNames(t *testing.T, s *store.Store) {
	w := newWriter(t, s, "prod")
	w.put(similarObjects(roles, "")...)
	equal(t, "pages of one", namesOf(t, s, store.Query{Limit: 1}), slices.Sorted(slices.Values(similarNames())))
	equal(t, "pages of two", namesOf(t, s, store.Query{Limit: 2}), slices.Sorted(slices.Values(similarNames())))
}

func testNamesOfOperationsAndTasks(t *testing.T, s *store.Store) {
	for i, name := range similarNames() {
		o := operation(i)
		o.Account, o.Agent, o.Origin = vedette.AccountName(name), vedette.AgentID(name), name
		beginOperation(t, s, o)
		row := task(i)
		row.RequestID = name
		createTask(t, s, row)
	}
	for _, name := range similarNames() {
		for what, q := range map[string]store.OperationQuery{
			"account": {Accounts: []vedette.AccountName{vedette.AccountName(name)}}, "agent": {Agent: vedette.AgentID(name)}, "origin": {Origin: name},
		} {
			found, _, err := s.Operations(t.Context(), q)
			if err != nil || len(found) != 1 || string(found[0].Account) != name {
				t.Errorf("got %d operations of the %s %q, %v, want its own", len(found), what, name, err)
			}
		}
	}
}

// testOtherNames asks for names that are too long, and ones that no database stores.
func testOtherNames(t *testing.T, s *store.Store) {
	w := newWriter(t, s, "prod")
	long := strings.Repeat("x", 512)
	for _, name := range []string{long, "a\ufffd", "a\ufffdb"} {
		o := object(roles, "", name, "1")
		o.Body = bodyOf(name)
		w.put(o)
	}
	for _, name := range []string{long + "x", "a\x00", "a\xff", "a\x00b", "a\xffb"} {
		equal(t, "the query for one name", namesOf(t, s, store.Query{Name: name}), nil)
	}
}
