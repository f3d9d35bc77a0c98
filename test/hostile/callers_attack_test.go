package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// caller is a client of the REST API with an address of its own.
type caller struct {
	*hostileWorld
	client http.Client
	from   string
}

func (w *hostileWorld) newCaller() *caller {
	from := w.newAddress()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &caller{hostileWorld: w, from: from, client: http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}}}}
}

func (w *hostileWorld) callRepeatedly(c *caller, do func(*caller)) {
	for w.ctx.Err() == nil {
		do(c)
		pause(w.ctx, 20*time.Millisecond)
	}
}

// do sends a request and discards the answer, or keeps it open without reading it.
func (c *caller) do(method, path string, body io.Reader, user string, unread time.Duration) {
	ctx, cancel := context.WithTimeout(c.ctx, c.client.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.field.REST+path, body)
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/json")
	if user != "" {
		r.Header.Set("X-Spinnaker-User", user)
	}
	response, err := c.client.Do(r)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if unread > 0 {
		pause(c.ctx, unread)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<20))
}

func (c *caller) get(path string) { c.do(http.MethodGet, path, nil, "", 0) }

// artifact fetches an artifact.
func (c *caller) artifact(kind, account, reference, more string) {
	c.do(http.MethodPut, "/artifacts/fetch", strings.NewReader(fmt.Sprintf(`{"type":%q,"artifactAccount":%q,"reference":%q%s}`, kind, account, reference, more)), "", 0)
}

// operate sends an operation and leaves after a time.
func (c *caller) operate(operation io.Reader, leave time.Duration) {
	c.post("/vedette/v1/operations", operation, leave)
}

// post sends a body and leaves after a time.
func (c *caller) post(path string, body io.Reader, leave time.Duration) {
	client := c.client
	client.Timeout = leave
	if response, err := client.Post(c.field.REST+path, "application/json", body); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

// raw sends bytes over a connection of its own, piece by piece, and waits.
func (c *caller) raw(head string, piece []byte, n int, between, after time.Duration) {
	c.rawTo(c.field.REST, head, piece, n, between, after)
}

// rawTo is raw for another URL than that of REST.
func (c *caller) rawTo(to, head string, piece []byte, n int, between, after time.Duration) {
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}}).DialContext(c.ctx, "tcp", strings.TrimPrefix(to, "http://"))
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, err = io.WriteString(conn, head)
	for i := 0; err == nil && i < n; i++ {
		_, err = conn.Write(piece)
		pause(c.ctx, between)
	}
	pause(c.ctx, after)
}

var (
	smallValues = sync.OnceValue(func() string { return strings.Repeat(`{"":0},`, 4<<20) })
	fifteenMiB  = sync.OnceValue(func() []byte { return bytes.Repeat([]byte("0123456789abcdef"), 15<<16) })
	hugeHeader  = sync.OnceValue(func() string { return strings.Repeat("h", 100<<10) })
)

// callerAttack is what a caller does again and again; parallel callers with addresses of their own do it at once.
type callerAttack struct {
	parallel int
	once     func(c *caller, i int)
}

// callerAttacks are the attacks on REST, and on what callers can make the server read.
var callerAttacks = map[string]callerAttack{
	"wide headers": {4, func(c *caller, _ int) {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				c.raw("GET /vedette/v1/version HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "+hugeHeader()+"\r\n", []byte("X-B: b\r\n"), 100, 30*time.Millisecond, 0)
			})
		}
		all.Wait()
		c.raw("GET / HTTP/1.1\r\nHost: x\r\nX-A: "+hugeHeader(), []byte(hugeHeader()), 10, 0, 0)
	}},
	"long URLs": {1, func(c *caller, i int) {
		c.get("/vedette/v1/objects?name=" + strings.Repeat("n", 20<<10+c.pick(20<<10)))
	}},
	"wide queries": {2, func(c *caller, i int) {
		var q strings.Builder
		q.WriteString("/vedette/v1/objects?limit=1000&account=large-*")
		for n := range 19 {
			fmt.Fprintf(&q, ",l*a*r*g*e*%d", n)
		}
		for n := range 99 {
			fmt.Fprintf(&q, "&kind=k%d", n)
		}
		selector := "a in (x"
		for n := range 499 {
			selector += fmt.Sprintf(",x%d", n)
		}
		c.get(q.String() + "&kind=pods&selector=" + url.QueryEscape(selector+"),!b,c!=d"))
	}},
	"slow bodies": {30, func(c *caller, i int) {
		path := []string{"/vedette/v1/operations", "/kubernetes/ops", "/vedette/v1/accounts/x/accept", "/vedette/v1/accounts/x/release", "/ops"}[i%5]
		c.raw("POST "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 16000000\r\n\r\n", fifteenMiB()[:1<<20], 15, 500*time.Millisecond, time.Second)
	}},
	"large bodies": {4, func(c *caller, i int) {
		path := []string{"/vedette/v1/operations", "/kubernetes/ops", "/ops", "/kubernetes/task"}[i]
		c.do(http.MethodPost, path, io.MultiReader(strings.NewReader(`[{"deployManifest":{"account":"mute","manifests":["`), bytes.NewReader(fifteenMiB()), strings.NewReader(`"]}}]`)), "", 0)
	}},
	"operations of callers who leave": {4, func(c *caller, i int) {
		account := []string{"mute", "operations-0", "hangs-mid-body", "mute-2"}[i]
		c.operate(io.MultiReader(strings.NewReader(`{"account":"`+account+`","timeout":"60s","verb":"apply","manifest":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"x"},"data":{"a":"`),
			bytes.NewReader(fifteenMiB()[:14<<20]), strings.NewReader(`"}}}`)), 2*time.Second)
	}},
	"idle connections": {4, func(c *caller, _ int) {
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() { c.raw("GET /", nil, 0, 0, 2*time.Second) })
		}
		all.Wait()
	}},
	"probes of the server": {4, func(c *caller, i int) { c.occupy(c.field.Management[0], i, 100) }},
	"probes of the agent":  {4, func(c *caller, i int) { c.occupy(c.field.Management[1], i, 50) }},
	"tasks of callers who leave": {4, func(c *caller, i int) {
		c.post("/kubernetes/ops", io.MultiReader(strings.NewReader(`[{"deployManifest":{"account":"mute","manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"x"},"data":{"a":"`),
			bytes.NewReader(fifteenMiB()[:14<<20]), strings.NewReader(`"}}]}}]`)), 2*time.Second)
	}},
	"tasks with endless answers": {4, func(c *caller, i int) {
		c.post("/kubernetes/ops", strings.NewReader(`[{"scaleManifest":{"account":"bloat","manifestName":"deployment x","location":"n","replicas":1}}]`), 5*time.Second)
	}},
	"manifests in YAML": {4, func(c *caller, i int) {
		values := `a: &a [` + strings.Repeat("x,", 1000) + `x]\nb: [` + strings.Repeat("*a,", 10_000) + `*a]`
		if i%2 == 0 {
			values = strings.Repeat(`- [[[[[[[[x]]]]]]]]\n`, 500_000)
		}
		c.operate(strings.NewReader(`{"account":"mute","timeout":"10s","verb":"apply","manifest":"`+values+`"}`), 15*time.Second)
	}},
	"lists that are not read": {4, func(c *caller, i int) {
		for n, a := range operationsOnce() {
			if a.name == "a list of 40,000 objects of 5 KB" {
				body := fmt.Sprintf(`{"account":"operations-%d","timeout":"10s",%s}`, n, a.operation)
				c.raw(fmt.Sprintf("POST /vedette/v1/operations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body), nil, 0, 0, 8*time.Second)
			}
		}
	}},
	"answers that are not read": {20, func(c *caller, i int) {
		paths := []string{fmt.Sprintf("/vedette/v1/objects?account=large-%d&include=body&limit=1000", i), "/vedette/v1/objects?account=large-*&as=table&kind=pods&limit=1000",
			"/tasks", "/vedette/v1/operations?limit=1000", "/applications/huge/serverGroups?expand=true", "/vedette/v1/feeds?limit=1000"}
		c.do(http.MethodGet, paths[i%len(paths)], nil, "", 5*time.Second)
	}},
	"searches": {2, func(c *caller, i int) {
		c.get("/search?pageSize=10000&type=" + []string{"serverGroups", "instances"}[i] + "&q=" + strings.Repeat("a", 1+c.pick(3)))
		c.get("/vedette/v1/objects?limit=1000&name=*a*b*c*")
	}},
	"applications": {6, func(c *caller, i int) {
		paths := []string{"/applications?restricted=false&expand=true", "/applications/huge/serverGroups?expand=true", "/applications/huge/clusters", "/applications/huge/loadBalancers",
			fmt.Sprintf("/applications/app%d/serverGroups?expand=true", c.pick(3000)), "/applications/huge/rawResources"}
		c.get(paths[i])
	}},
	"streams with selectors": {30, func(c *caller, i int) {
		c.do(http.MethodGet, "/vedette/v1/changes?initial=true&selector="+url.QueryEscape("!nothing"), nil, "", 8*time.Second)
	}},
	"streams that fall behind": {30, func(c *caller, i int) {
		c.do(http.MethodGet, "/vedette/v1/changes?include=body&account=large-*", nil, "", 8*time.Second)
	}},
	"logs that are not read": {20, func(c *caller, i int) {
		c.do(http.MethodGet, "/vedette/v1/logs?account=containers&namespace=n&name=endless", nil, "", 5*time.Second)
	}},
	"denied callers with long names": {4, func(c *caller, i int) {
		c.do(http.MethodPost, "/vedette/v1/operations", strings.NewReader(`{"account":"mute","verb":"get","kind":"pod","name":"x"}`), "denied"+fmt.Sprint(c.pick(1000))+hugeHeader()[:30<<10], 0)
	}},
	"bodies of small values": {6, func(c *caller, i int) {
		method, path := http.MethodPost, []string{"/kubernetes/ops", "/artifacts/fetch", "/vedette/v1/operations", "/ops", "/kubernetes/task", "/artifacts/fetch"}[i]
		if strings.HasPrefix(path, "/artifacts") {
			method = http.MethodPut
		}
		n := []int{200_000, 1 << 20, 4 << 20}[c.pick(3)] // accepted, and more than may be
		c.do(method, path, strings.NewReader("["+smallValues()[:n*7]+"{}]"), "", 0)
	}},
	"properties of Jobs":   {4, func(c *caller, i int) { c.get("/applications/a/kubernetes/pods/containers/n/properties/c") }},
	"consoles":             {4, func(c *caller, i int) { c.get("/instances/containers/n/pod%20endless/console") }},
	"jobs of small values": {6, func(c *caller, i int) { c.get("/applications/a/jobs/containers/n/small") }},
	"packs of Git": {4, func(c *caller, i int) {
		c.artifact("git/repo", "git", c.field.Services["git"]+"/repo.git", `,"version":"zeros"`)
	}},
	"large clones of Git": {4, func(c *caller, i int) {
		c.artifact("git/repo", "git", c.field.Services["git"]+"/repo.git", `,"version":"large"`)
	}},
	"attributes in many directories": {4, func(c *caller, i int) {
		c.artifact("git/repo", "git", c.field.Services["git"]+"/repo.git", `,"version":"attributes"`)
	}},
	"endless branches of Git": {4, func(c *caller, i int) { c.artifact("git/repo", "git", c.field.Services["branches"]+"/repo.git", ``) }},
	"indexes of Helm": {4, func(c *caller, i int) {
		c.artifact("helm/chart", "helm", "", fmt.Sprintf(`,"name":"chart","version":"1.%d"`, i))
	}},
	"endless files": {4, func(c *caller, i int) { c.artifact("http/file", "files", c.field.Services["files"]+"/endless", "") }},
	"the artifact store": {4, func(c *caller, i int) {
		c.get("/artifacts/content-address/app/hash")
		c.artifact("remote/base64", "", "ref://app/hash", "")
	}},
	"Front50": {2, func(c *caller, i int) { c.get(fmt.Sprintf("/projects/p%d/clusters", c.pick(1000))) }},
	"metadata of GitHub": {4, func(c *caller, i int) {
		c.artifact("github/file", "github", c.field.Services["github"]+"/repos/o/r/contents/f", "")
	}},
	"an upstream": {6, func(c *caller, i int) {
		c.get([]string{"/credentials?expand=true", "/applications", "/search?q=a", "/kubernetes/loadBalancers", "/artifacts/credentials", "/tasks"}[i])
	}},
	"Fiat": {10, func(c *caller, i int) {
		c.do(http.MethodGet, "/vedette/v1/accounts/mute", nil, fmt.Sprintf("%s-%d", []string{"endless", "wide", "deep", "slow", "many"}[i%5], c.pick(1000)), 0)
	}},
	"manifests of small values": {4, func(c *caller, i int) {
		c.operate(strings.NewReader(`{"account":"operations-`+fmt.Sprint(i)+`","timeout":"10s",`+strings.TrimSuffix(applyOperation, "}")+`,"a":[`+smallValues()[:7*200_000]+`{}]}}`), 15*time.Second)
	}},
	"operations": {28, func(c *caller, i int) {
		a := operationsOnce()[i%len(operationsOnce())]
		c.hit(a.name)
		c.operate(strings.NewReader(fmt.Sprintf(`{"account":"operations-%d","timeout":"10s",%s}`, i%len(operationsOnce()), a.operation)), 15*time.Second)
	}},
	"endless answers to operations": {4, func(c *caller, i int) {
		c.operate(strings.NewReader(`{"account":"bloat","timeout":"10s",`+getOperation+`}`), 15*time.Second)
	}},
}

// occupy opens connections to a port for probes and metrics: silent ones, wide headers, scrapes that are not read,
// and requests without end.
func (c *caller) occupy(to string, i, connections int) {
	const get = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			switch i {
			case 0:
				c.rawTo(to, "GET /", nil, 0, 0, 2*time.Second)
			case 1:
				c.rawTo(to, get+"X-A: "+hugeHeader(), []byte(hugeHeader()), 3, 100*time.Millisecond, 0)
			case 2:
				c.rawTo(to, get+"\r\n"+get+"\r\n"+get+"\r\n", nil, 0, 0, 3*time.Second)
			default:
				c.rawTo(to, "POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000000\r\n\r\n", []byte(hugeHeader()), 20, 100*time.Millisecond, 0)
			}
		})
	}
	all.Wait()
}

var operationsOnce = sync.OnceValue(operationAttacks)

// pick returns a number below n.
func (w *hostileWorld) pick(n int) int { return int(time.Now().UnixNano()/1000) % n }
