package applications

import (
	"encoding/json"
	"testing"
)

func TestNetworkPolicyRules(t *testing.T) {
	const rule = `{"class":"com.netflix.spinnaker.clouddriver.kubernetes.caching.view.model.KubernetesSecurityGroup$PortRule"`
	for _, tt := range []struct{ name, spec, inbound, outbound string }{
		{"no rules", `{}`, `[]`, `[]`},
		{"all traffic", `{"ingress":[{}],"egress":[{"to":[{"podSelector":{}}]}]}`, `[]`, `[]`},
		{"a number", `{"ingress":[{"ports":[{"protocol":"TCP","port":8080}]}]}`, `[` + rule + `,"protocol":"TCP","portRanges":[{"startPort":8080,"endPort":8080}]}]`, `[]`},
		{"a number as text", `{"ingress":[{"ports":[{"protocol":"TCP","port":"8080"}]}]}`, `[` + rule + `,"protocol":"TCP","portRanges":[{"startPort":8080,"endPort":8080}]}]`, `[]`},
		{"a name", `{"egress":[{"ports":[{"protocol":"UDP","port":"dns"}]}]}`, `[]`, `[` + rule + `,"protocol":"UDP","portRanges":[{"startPortName":"dns","endPortName":"dns"}]}]`},
		{"a protocol on all ports", `{"egress":[{"ports":[{"protocol":"SCTP"}]}]}`, `[]`, `[` + rule + `,"protocol":"SCTP"}]`},
		{"a port that is null", `{"egress":[{"ports":[{"protocol":"TCP","port":null}]}]}`, `[]`, `[` + rule + `,"protocol":"TCP"}]`},
		{"a range, of which Clouddriver shows the start", `{"ingress":[{"ports":[{"protocol":"TCP","port":80,"endPort":90}]}]}`,
			`[` + rule + `,"protocol":"TCP","portRanges":[{"startPort":80,"endPort":80}]}]`, `[]`},
		{"the same port of two rules, once", `{"ingress":[{"ports":[{"protocol":"TCP","port":80},{"protocol":"TCP","port":443}]},{"ports":[{"protocol":"TCP","port":80}]}]}`,
			`[` + rule + `,"protocol":"TCP","portRanges":[{"startPort":80,"endPort":80}]},` + rule + `,"protocol":"TCP","portRanges":[{"startPort":443,"endPort":443}]}]`, `[]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, out, err := networkPolicyRules([]byte(`{"spec":` + tt.spec + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := marshal(t, in); got != tt.inbound {
				t.Errorf("inbound: got %s, want %s", got, tt.inbound)
			}
			if got := marshal(t, out); got != tt.outbound {
				t.Errorf("outbound: got %s, want %s", got, tt.outbound)
			}
		})
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func FuzzNetworkPolicyRules(f *testing.F) {
	f.Add([]byte(`{"spec":{"ingress":[{"ports":[{"protocol":"TCP","port":8080}]}]}}`))
	f.Add([]byte(`{"spec":{"egress":[{"ports":[{"port":{"a":1}},{"port":1e99},null]}]}}`))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		in, out, err := networkPolicyRules(manifest)
		if err != nil {
			return
		}
		if !json.Valid([]byte(marshal(t, append(in, out...)))) {
			t.Error("the rules are not valid JSON")
		}
	})
}
