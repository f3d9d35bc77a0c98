package discover

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

var inTest = selection{namespace: "ns", prefix: "spin-clouddriver", port: "http"}

// lists returns what becomes of documents as "id url ready", and what is said of them.
func lists(t *testing.T, r *resource, documents ...string) (list, remarks string) {
	t.Helper()
	var c catalog
	var said []string
	for _, document := range documents {
		d, err := r.decode([]byte(document), inTest)
		if err != nil {
			said = append(said, err.Error())
			continue
		}
		said = append(said, d.remarks...)
		if err := c.put(d.metadata.Name, d.object); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for _, s := range c.servers(naming{scheme: "http"}) {
		lines = append(lines, fmt.Sprint(s.ID, " ", strings.TrimPrefix(s.BaseURL, "http://"), " ", s.Ready))
	}
	return strings.Join(lines, ", "), strings.Join(said, "; ")
}

const (
	httpPort = `"ports":[{"name":"http","port":7002,"protocol":"TCP"}]`
	podA     = `"targetRef":{"kind":"Pod","namespace":"ns","name":"a"}`
)

func sliceOf(name, service, rest string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","labels":{"kubernetes.io/service-name":%q}},%s}`, name, service, rest)
}

func TestEndpointSlicesBecomeServers(t *testing.T) {
	one := func(endpoint string) string {
		return sliceOf("s", "spin-clouddriver", `"endpoints":[`+endpoint+`],`+httpPort)
	}
	for name, tt := range map[string]struct {
		documents     []string
		list, remarks string
	}{
		"a pod":                      {[]string{one(`{"addresses":["10.0.0.1"],"conditions":{"ready":true},` + podA + `}`)}, "a 10.0.0.1:7002 true", ""},
		"unknown readiness is ready": {[]string{one(`{"addresses":["10.0.0.1"],` + podA + `}`)}, "a 10.0.0.1:7002 true", ""},
		"a pod that is not ready":    {[]string{one(`{"addresses":["10.0.0.1"],"conditions":{"ready":false},` + podA + `}`)}, "a 10.0.0.1:7002 false", ""},
		"published but not serving":  {[]string{one(`{"addresses":["10.0.0.1"],"conditions":{"ready":true,"serving":false},` + podA + `}`)}, "a 10.0.0.1:7002 false", ""},
		"a pod that ends":            {[]string{one(`{"addresses":["10.0.0.1"],"conditions":{"ready":true,"terminating":true},` + podA + `}`)}, "a 10.0.0.1:7002 false", ""},
		"an address without a pod":   {[]string{one(`{"addresses":["10.0.0.1"]}`)}, "10.0.0.1 10.0.0.1:7002 true", ""},
		"a target that is not a pod": {[]string{one(`{"addresses":["10.0.0.1"],"targetRef":{"kind":"Node","name":"n"}}`)}, "10.0.0.1 10.0.0.1:7002 true", ""},
		"a pod of another namespace": {[]string{one(`{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","namespace":"x","name":"a"}}`)}, "10.0.0.1 10.0.0.1:7002 true", ""},
		"IPv6":                       {[]string{one(`{"addresses":["2001:db8::1"],` + podA + `}`)}, "a [2001:db8::1]:7002 true", ""},
		"a null condition":           {[]string{one(`{"addresses":["10.0.0.1"],"conditions":{"ready":null},` + podA + `}`)}, "a 10.0.0.1:7002 true", ""},
		"no addresses":               {[]string{one(`{"addresses":[],` + podA + `}`), sliceOf("t", "spin-clouddriver", `"endpoints":null,"ports":null`)}, "", ""},
		"a host name":                {[]string{one(`{"addresses":["db.example.com"],` + podA + `}`)}, "", `its address "db.example.com" is not an IP address of another machine`},
		"an address of this machine": {[]string{one(`{"addresses":["127.0.0.1"]},{"addresses":["169.254.169.254"]},{"addresses":["::"]},{"addresses":["fe80::1%eth0"]},{"addresses":["10.0.0.2"]}`)}, "10.0.0.2 10.0.0.2:7002 true", `its address "127.0.0.1" is not an IP address of another machine; its address "169.254.169.254" is not an IP address of another machine; its address "::" is not an IP address of another machine`},
		"a name that no pod has":     {[]string{one(`{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","name":"a\nb"}}`)}, "", `its address 10.0.0.1 has a targetRef with the name "a\nb", which no pod can have`},
		"another port":               {[]string{sliceOf("s", "spin-clouddriver", `"endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"name":"grpc","port":9091},{"port":7002},{"name":"http","port":7002,"protocol":"UDP"},{"name":"HTTP","port":1}]`)}, "", ""},
		"no port":                    {[]string{sliceOf("s", "spin-clouddriver", `"endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"name":"http","port":70000}]`)}, "", `its port "http" is 70000, which is not a port of TCP`},
		"another Service":            {[]string{sliceOf("s", "clouddriver", `"endpoints":[{"addresses":["10.0.0.1"]}],`+httpPort), `{"metadata":{"name":"x"},"endpoints":[{"addresses":["10.0.0.2"]}],` + httpPort + `}`}, "", ""},
		"another namespace":          {[]string{`{"metadata":{"name":"x","namespace":"other","labels":{"kubernetes.io/service-name":"spin-clouddriver"}}}`}, "", `it is of namespace "other"`},
		"several Services of one pod": {[]string{
			sliceOf("x", "spin-clouddriver-ro", `"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true},`+podA+`}],"ports":[{"name":"http","port":80}]`),
			one(`{"addresses":["10.0.0.1"],"conditions":{"ready":false},` + podA + `}`)}, "a 10.0.0.1:7002 false", ""},
		"both families of one pod": {[]string{
			sliceOf("a6", "spin-clouddriver", `"endpoints":[{"addresses":["2001:db8::1"],`+podA+`}],`+httpPort),
			sliceOf("b4", "spin-clouddriver", `"endpoints":[{"addresses":["10.0.0.1"],`+podA+`}],`+httpPort)}, "a 10.0.0.1:7002 true", ""},
		"bytes that are not UTF-8": {[]string{"{\"metadata\":{\"name\":\"\xff\"}}", one(`{"addresses":["10.0.0.1"],` + podA + `}`)}, "a 10.0.0.1:7002 true", "text that is not valid UTF-8 at byte"},
		"names that occur twice":   {[]string{one(`{"addresses":["10.0.0.1"],"addresses":["10.0.0.2"]}`)}, "", "a name occurs twice in one object at byte"},
		"no name":                  {[]string{`{"metadata":{}}`, `{}`, `null`}, "", "it has no name; it has no name; it has no name"},
		"not an object":            {[]string{`[1]`}, "", "cannot unmarshal"},
	} {
		list, remarks := lists(t, sliceResource, tt.documents...)
		if list != tt.list || !strings.Contains(remarks, tt.remarks) || (remarks == "") != (tt.remarks == "") {
			t.Errorf("%s: got %q and %q, want %q and %q", name, list, remarks, tt.list, tt.remarks)
		}
	}
}

func TestEndpointsBecomeServers(t *testing.T) {
	for name, tt := range map[string]struct{ document, list, remarks string }{
		"both kinds of addresses": {`{"metadata":{"name":"spin-clouddriver"},"subsets":[{"addresses":[{"ip":"10.0.0.1",` + podA + `}],"notReadyAddresses":[{"ip":"10.0.0.2"}],` + httpPort + `}]}`,
			"10.0.0.2 10.0.0.2:7002 false, a 10.0.0.1:7002 true", ""},
		"subsets with other ports": {`{"metadata":{"name":"spin-clouddriver"},"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":1}]},{"addresses":[{"ip":"10.0.0.2"}],` + httpPort + `},{"addresses":[{"ip":"10.0.0.3"}]}]}`,
			"10.0.0.2 10.0.0.2:7002 true", ""},
		"another name": {`{"metadata":{"name":"Spin-clouddriver"},"subsets":[{"addresses":[{"ip":"10.0.0.1"}],` + httpPort + `}]}`, "", ""},
		"too many for Endpoints": {`{"metadata":{"name":"spin-clouddriver","annotations":{"endpoints.kubernetes.io/over-capacity":"truncated"}},"subsets":[{"addresses":[{"ip":"10.0.0.1"}],` + httpPort + `}]}`,
			"10.0.0.1 10.0.0.1:7002 true", "only the first 1,000 addresses"},
	} {
		list, remarks := lists(t, endpointsResource, tt.document)
		if list != tt.list || !strings.Contains(remarks, tt.remarks) || (remarks == "") != (tt.remarks == "") {
			t.Errorf("%s: got %q and %q, want %q and %q", name, list, remarks, tt.list, tt.remarks)
		}
	}
}

// TestManyAddresses checks that many addresses of one object are listed, and that what is kept has a bound.
func TestManyAddresses(t *testing.T) {
	const n = 5000
	addresses := make([]map[string]any, n)
	for i := range addresses {
		addresses[i] = map[string]any{"ip": fmt.Sprintf("10.1.%d.%d", i/250, i%250+1), "nodeName": "node-of-the-pod",
			"targetRef": map[string]any{"kind": "Pod", "namespace": "ns", "name": fmt.Sprintf("spin-clouddriver-%d", i), "uid": "01234567-89ab-cdef-0123-456789abcdef"}}
	}
	document, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "spin-clouddriver"},
		"subsets": []any{map[string]any{"addresses": addresses, "ports": []any{map[string]any{"name": "http", "port": 7002}}}}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := endpointsResource.decode(document, inTest)
	if err != nil {
		t.Fatalf("%d bytes: %v", len(document), err)
	}
	var c catalog
	for i := range maxAddresses / n {
		if err := c.put(fmt.Sprint(i), d.object); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(c.servers(naming{})); got != n {
		t.Errorf("got %d servers, want %d: each once", got, n)
	}
	if err := c.put("another", d.object); err == nil || !strings.Contains(err.Error(), "more than 20000 addresses") {
		t.Errorf("got %v, want an error about the number", err)
	}
	if err := c.put("0", d.object); err != nil { // replaces
		t.Error(err)
	}
	c.remove("0")
	c.remove("unknown")
	if err := c.put("another", d.object); err != nil {
		t.Error(err)
	}
}

// TestDNSNames checks the names that a cluster's DNS has for pods.
func TestDNSNames(t *testing.T) {
	for ip, want := range map[string]string{"10.0.0.1": "https://10-0-0-1.ns.pod.cluster.local:7002", "2001:db8::1": "https://2001-db8--1.ns.pod.cluster.local:7002"} {
		in := reader{selection: inTest}
		in.add(ip, nil, 7002, true)
		if got := (naming{"https", ".ns.pod.cluster.local"}).url(in.object.endpoints[0]); got != want {
			t.Errorf("%s: got %s, want %s", ip, got, want)
		}
	}
}

// TestPlan checks what is done after what has happened.
func TestPlan(t *testing.T) {
	const (
		choose, list, watch = stepChoose, stepList, stepWatch
	)
	listed := func() *plan {
		p := &plan{}
		p.chosen(sliceResource)
		p.listed("7")
		return p
	}
	watched := func(times int, lasted bool, err error) *plan {
		p := listed()
		for range times {
			p.watched("8", lasted, err)
		}
		return p
	}
	listFailed := func(err error) *plan {
		p := listed()
		p.version = ""
		p.failed(err)
		return p
	}
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		plan *plan
		next step
	}{
		"at first":                    {&plan{}, choose},
		"listed":                      {listed(), watch},
		"a watch has ended":           {watched(1, true, nil), watch},
		"a watch broke":               {watched(2, false, broken), watch},
		"the third one in a row":      {watched(3, false, broken), list},
		"three that had lasted":       {watched(3, true, broken), watch},
		"ended at once, three times":  {watched(3, false, nil), list},
		"the version is gone":         {watched(1, true, errGone), list},
		"status 410":                  {watched(1, true, &answerError{status: 410}), list},
		"rights of the watch removed": {watched(1, true, &answerError{status: 403}), choose},
		"the list fails":              {listFailed(broken), list},
		"the list is denied":          {listFailed(&answerError{status: 403}), choose},
		"the kind is unknown":         {listFailed(&answerError{status: 404}), choose},
	} {
		if got := tt.plan.next(); got != tt.next {
			t.Errorf("%s: got step %d, want %d", name, got, tt.next)
		}
	}
	if p := listFailed(&answerError{status: 404}); !p.slicesAreMissing {
		t.Error("EndpointSlices are tried again, although the cluster has none")
	}
}

func TestSubjects(t *testing.T) {
	const payload = "eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6bnM6c2VydmVyIn0" // {"sub":"system:serviceaccount:ns:server"}
	for token, want := range map[string]subject{"a." + payload + ".c": "system:serviceaccount:ns:server", "a.b": "", "a.!.c": "", "a.e30.c": "", "": ""} {
		if got := subjectOf(token); got != want {
			t.Errorf("%q: got %q, want %q", token, got, want)
		}
	}
	for s, want := range map[subject]string{
		"system:serviceaccount:ns:server": "{kind: ServiceAccount, namespace: ns, name: server}",
		"system:serviceaccount:123:true":  `{kind: ServiceAccount, namespace: "123", name: "true"}`,
		"somebody: {else}":                `{apiGroup: rbac.authorization.k8s.io, kind: User, name: "somebody: {else}"}`,
		"":                                "{kind: ServiceAccount, namespace: NAMESPACE, name: NAME} # of the server's pods",
	} {
		if got := s.yaml(); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}
