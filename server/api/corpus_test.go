package api_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/test/corpus"
)

// TestResponsesFollowTheOpenAPIDocument reads objects from busy clusters in each form that the API has, and validates
// each response against openapi.yaml.
func TestResponsesFollowTheOpenAPIDocument(t *testing.T) {
	world := readtest.New(t)
	var kinds []any
	for _, k := range corpus.Kinds {
		kinds = append(kinds, k)
	}
	world.Account("busy", kinds...)
	var manifests []string
	for _, o := range corpus.New(7).Objects(200) {
		manifests = append(manifests, string(o.Body))
	}
	world.Put("busy", manifests...)
	w := serve(t, configOf(world))
	all := getJSON[objectList](w, "/objects?limit=5000&include=body")
	if len(all.Items) != 200 || all.Total != 200 {
		t.Fatalf("got %d of %d objects", len(all.Items), all.Total)
	}
	for _, o := range all.Items[:30] { // validating all of them takes too long
		one := getJSON[struct{ UID string }](w, "/objects/busy/"+o.Kind+"/"+url.PathEscape(o.Namespace)+"/"+url.PathEscape(o.Name))
		if one.UID != o.UID {
			t.Errorf("%s %s/%s: got another uid by its path", o.Kind, o.Namespace, o.Name)
		}
	}
	for _, k := range corpus.Kinds {
		got := getJSON[table](w, "/objects?limit=5000&as=table&kind="+k.Plural)
		if len(got.Rows) == 0 {
			t.Errorf("got no objects of %s", k.Plural)
		}
		for _, row := range got.Rows {
			if len(row.Cells) != len(got.Columns) || slices.Contains(row.Cells, "<unknown>") || slices.Contains(row.Cells, "<invalid>") {
				t.Errorf("%s %s: got %q", k.Kind, row.Name, row.Cells)
			}
		}
	}
}

// TestRolesAndStatesMatchOpenAPI checks that openapi.yaml has all roles and states of the
// package.
func TestRolesAndStatesMatchOpenAPI(t *testing.T) {
	doc, _ := loadOpenAPI(t)
	roles := doc.Components.Schemas["Agent"].Value.Properties["accounts"].Value.Items.Value.Properties["role"].Value.Enum
	for _, role := range []api.Role{api.Cacher, api.Standby, api.Refused} {
		if !slices.Contains(roles, any(string(role))) {
			t.Errorf("role %s is missing in openapi.yaml", role)
		}
	}
	states := doc.Components.Schemas["FeedState"].Value.Enum
	for _, state := range []vedette.FeedState{vedette.FeedPending, vedette.FeedSyncing, vedette.FeedLive, vedette.FeedFailing, vedette.FeedDenied} {
		if !slices.Contains(states, any(string(state))) {
			t.Errorf("state %s is missing in openapi.yaml", state)
		}
	}
}
