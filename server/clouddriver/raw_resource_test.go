package clouddriver_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
)

// TestRawResourcesFollowSettings changes an account's settings but none of its objects.
func TestRawResourcesFollowSettings(t *testing.T) {
	w := infrastructureWorld(t)
	if err := w.Store.RemoveAccount(t.Context(), "dev"); err != nil { // answers with other kinds are not kept
		t.Fatal(err)
	}
	url := serve(t, clouddriver.Config{Store: w.Store}) + "/applications/shop/rawResources"
	kinds := []any{"pods", "replicasets", "deployments", "statefulsets", "services", "ingresses", "networkpolicies", "configmaps", crontab}
	for _, omitted := range [][]string{nil, {"service"}, nil, {"service", "ingress"}} {
		w.Register(vedette.Account{Name: "prod", Properties: vedette.Properties{OmitKinds: omitted}}, kinds...)
		_, body := get(t, url)
		for name, kind := range map[string]string{"service shop-api": "service", "ingress shop-web": "ingress"} {
			if shown := bytes.Contains(body, []byte(name)); shown == slices.Contains(omitted, kind) {
				t.Errorf("without the kinds %v: got %s shown: %v", omitted, name, shown)
			}
		}
	}
}
