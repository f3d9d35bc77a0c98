package applications

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/jsonwriter"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/infrastructure"
)

// FuzzEncoder encodes arbitrary texts in every place where a view shows data, and decodes them.
func FuzzEncoder(f *testing.F) {
	for _, text := range []string{"", "web", `"quoted" \\ back`, "new\nline\x00", "<&>\u2028", "\xff", "日本", "{", "[,:"} {
		f.Add(text, len(text))
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		o := &infrastructure.Object{Key: vedette.Key{Kind: infrastructure.ServerGroupKinds[0], Namespace: text, Name: text}, UID: text,
			Account: vedette.AccountName(text), Moniker: vedette.Moniker{App: text, Cluster: text, Stack: text, Detail: text, Sequence: &n}}
		o.APIVersion, o.Labels, o.Images, o.Replicas, o.Created = text, map[string]string{text: text, "a": "b"}, []string{text}, int64(n), int64(n)/1000
		o.Phase, o.Containers = text, []attributes.Container{{Name: text, Ready: true}}
		g := &infrastructure.ServerGroup{Object: o, Instances: []infrastructure.Instance{{Object: o, State: infrastructure.Up}}, LoadBalancers: []string{text}, Manager: text}
		for name, encode := range map[string]func(e *encoder){
			"summary": func(e *encoder) { e.serverGroupSummary(g) }, "detail": func(e *encoder) { e.serverGroupDetail(g) },
			"expanded": func(e *encoder) { e.expandedServerGroup(g) },
			"manager": func(e *encoder) {
				e.manager(&infrastructure.Manager{Object: o, ServerGroups: []*infrastructure.Object{o, o}})
			},
			"balancer": func(e *encoder) {
				e.loadBalancer(&infrastructure.LoadBalancer{Object: o, ServerGroups: []*infrastructure.ServerGroup{g, g}})
			},
			"cluster": func(e *encoder) {
				e.cluster(&infrastructure.Cluster{Application: text, Account: vedette.AccountName(text), Name: text, ServerGroups: []*infrastructure.ServerGroup{g, g}}, true)
			},
			"clusters": func(e *encoder) {
				e.clusterSummary(&infrastructure.Cluster{Application: text, Account: vedette.AccountName(text), Name: text, ServerGroups: []*infrastructure.ServerGroup{g, g}})
			},
			"application": func(e *encoder) {
				e.application(text, []accountClusters{{vedette.AccountName(text), []string{text, text}}})
			},
		} {
			var e encoder
			encode(&e)
			var decoded map[string]any
			if err := json.Unmarshal(e.B, &decoded); err != nil {
				t.Fatalf("%s: %v: %s", name, err, e.B)
			}
			if got, want := decoded["account"], any(text); decoded["account"] != nil && utf8.ValidString(text) && got != want {
				t.Errorf("%s: got account %q, want %q", name, got, want)
			}
		}
	})
}

func TestEncoderOmitsAbsentFields(t *testing.T) {
	o := &infrastructure.Object{Key: vedette.Key{Kind: infrastructure.ServerGroupKinds[0], Namespace: "shop", Name: "a:b"}, Account: "prod"}
	g := &infrastructure.ServerGroup{Object: o}
	var summary, detail encoder
	summary.serverGroupSummary(g)
	detail.serverGroupDetail(g)
	for name, tt := range map[string]struct {
		got     []byte
		present []string
		absent  []string
	}{
		"summary": {summary.B, []string{"instances", "loadBalancers", "securityGroups", "serverGroupManagers", "moniker"}, []string{"labels", "createdTime", "cluster", "application"}},
		"detail":  {detail.B, []string{"labels", "launchConfig", "zones", "instances"}, []string{"createdTime", "cluster", "isDisabled"}},
	} {
		var decoded map[string]any
		if err := json.Unmarshal(tt.got, &decoded); err != nil {
			t.Fatal(err)
		}
		for _, member := range tt.present {
			if decoded[member] == nil {
				t.Errorf("%s: got no %s in %s", name, member, tt.got)
			}
		}
		for _, member := range tt.absent {
			if decoded[member] != nil {
				t.Errorf("%s: got %s in %s, want it absent", name, member, tt.got)
			}
		}
		if moniker := decoded["moniker"]; !reflect.DeepEqual(moniker, map[string]any{}) {
			t.Errorf("%s: got the moniker %v, want an empty one", name, moniker)
		}
	}
}

// TestLargeAnswersAreCut encodes the same server group for many load balancers.
func TestLargeAnswersAreCut(t *testing.T) {
	o := &infrastructure.Object{Key: vedette.Key{Kind: infrastructure.ServerGroupKinds[0], Namespace: "shop", Name: "web"}, Account: "prod"}
	g := &infrastructure.ServerGroup{Object: o}
	for range 1000 {
		g.Instances = append(g.Instances, infrastructure.Instance{Object: o, State: infrastructure.Up})
	}
	b := &infrastructure.LoadBalancer{Object: o}
	for range 1000 {
		b.ServerGroups = append(b.ServerGroups, g)
	}
	e := encoder{jsonwriter.Writer{Limit: 1 << 20}}
	e.Grow(1 << 40)
	e.Array(func() {
		for range 1000 {
			e.loadBalancer(b)
		}
	})
	if !e.IsFull() || len(e.B) > 2*e.Limit {
		t.Errorf("got %d bytes, full: %v, want little more than %d", len(e.B), e.IsFull(), e.Limit)
	}
	small := encoder{jsonwriter.Writer{Limit: 1 << 20}}
	small.loadBalancer(&infrastructure.LoadBalancer{Object: o})
	if small.IsFull() || !json.Valid(small.B) {
		t.Errorf("got %s, full: %v, want all of it", small.B, small.IsFull())
	}
}
