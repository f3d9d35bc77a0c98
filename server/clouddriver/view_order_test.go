package clouddriver_test

import (
	"slices"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// relatedObjects are one of each kind of relation.
var relatedObjects = []string{
	`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop-web","namespace":"shop","uid":"d1"}}`,
	`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"shop-web-1","namespace":"shop","uid":"r1","annotations":{"moniker.spinnaker.io/application":"shop"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"shop-web","uid":"d1","controller":true}]},"spec":{"template":{"metadata":{"labels":{"app":"shop"}}}}}`,
	`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1-a","namespace":"shop","uid":"p1",
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"shop-web-1","uid":"r1","controller":true}]},"status":{"phase":"Running"}}`,
	`{"apiVersion":"v1","kind":"Service","metadata":{"name":"front","namespace":"shop","uid":"s1","annotations":{"moniker.spinnaker.io/application":"cart"}},"spec":{"selector":{"app":"shop"}}}`,
	`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"shop-web","namespace":"shop","uid":"i1"},"spec":{"defaultBackend":{"service":{"name":"front"}}}}`,
}

// permutations yields all orders of the numbers below n.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

// TestOrderOfArrivalDoesNotMatter stores related objects in all orders, and asks in between, so that
// what was read too early is kept. In the end, all views show the same.
func TestOrderOfArrivalDoesNotMatter(t *testing.T) {
	paths := []string{"/applications", "/applications/shop", "/applications/shop/clusters/prod", "/applications/shop/serverGroups?expand=true",
		"/applications/shop/serverGroupManagers", "/applications/shop/loadBalancers", "/applications/cart/loadBalancers", "/applications/shop/rawResources"}
	want := map[string]string{}
	w := readtest.New(t)
	for _, order := range permutations(len(relatedObjects)) {
		w.Account("prod", viewKinds()...)
		handler := clouddriver.New(clouddriver.Config{Store: w.Store})
		for _, i := range order {
			w.Put("prod", relatedObjects[i])
			for _, path := range paths {
				answerOf(handler, path)
			}
		}
		for _, path := range paths {
			got := answerOf(handler, path)
			if want[path] == "" {
				want[path] = got
			}
			if got != want[path] {
				t.Errorf("%s after the order %v: got\n%s\nwant\n%s", path, order, got, want[path])
			}
		}
		if err := w.Store.RemoveAccount(t.Context(), "prod"); err != nil {
			t.Fatal(err)
		}
	}
}
