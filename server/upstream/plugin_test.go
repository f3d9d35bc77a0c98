package upstream

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// pluginLists are the lists that this server shares with the predecessor's plugin, with this server's part.
var pluginLists = map[string]string{"/armory/agents": `[{"agentId":"a"}]`, "/armory/clouddrivers": `[{"id":"a"}]`,
	"/armory/agent/operations": `[{"operationId":"1","startTime":1}]`, "/armory/accounts": `{"items":[],"page":1,"limit":100,"total":0}`}

// springAnswer is how Clouddriver says that it does not have something.
func springAnswer(status string) string {
	return `{"timestamp":"2026-02-03T04:05:06.789+00:00","status":` + status + `,"error":"","message":"No endpoint"}`
}

// TestClouddriverWithoutThePlugin checks that only Clouddriver's own words mean that it has no agents.
func TestClouddriverWithoutThePlugin(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		isNone bool
	}{
		{"no plugin", 404, springAnswer("404"), true},
		{"an older plugin, without the method", 405, springAnswer("405"), true},
		{"dynamic accounts are switched off", 501, springAnswer("501"), true},
		{"a gateway without a backend", 404, "404 page not found", false},
		{"another status in the body", 404, springAnswer("500"), false},
		{"a gateway without the method", 405, "<html>", false},
		{"it fails", 500, springAnswer("500"), false},
		{"a gateway that fails", 502, "<html>", false},
		{"it is busy", 503, springAnswer("503"), false},
		{"something else", 200, `"hello"`, false},
		{"half an answer", 200, `[{"agentId":"b"}`, false},
	} {
		for path, local := range pluginLists {
			for _, partial := range []bool{false, true} {
				w := newWorld(t, func(c *Config) { c.Partial = partial })
				w.answers(local, "")
				w.setTheirs(answerJSON(tt.status, tt.body))
				response, body := w.send(t, http.MethodGet, path, "")
				isMarked := response.Header.Get(incompleteHeader) != ""
				isShown := response.StatusCode == http.StatusOK && body == local
				switch isPartial := partial && endpoint(t, strings.TrimPrefix(path, "/")).Policy == Partial; {
				case tt.isNone && (!isShown || isMarked):
					t.Errorf("%s, %s: got %d %s, marked: %t, want this server's part, which is all", tt.name, path, response.StatusCode, body, isMarked)
				case !tt.isNone && isPartial && (!isShown || !isMarked):
					t.Errorf("%s, %s: got %d %s, marked: %t, want this server's part, marked", tt.name, path, response.StatusCode, body, isMarked)
				case !tt.isNone && !isPartial && response.StatusCode != http.StatusServiceUnavailable:
					t.Errorf("%s, %s: got %d %s, want 503", tt.name, path, response.StatusCode, body)
				}
			}
		}
	}
}

// TestIDsGoToTheirSide checks what is answered for an id that this server has, that the plugin has, and that neither has.
func TestIDsGoToTheirSide(t *testing.T) {
	const ours, missing = `{"agentId":"ours"}`, `{"status":404,"message":"no agent \"their-id\" is connected"}`
	for _, path := range []string{"/armory/agents/", "/armory/clouddrivers/", "/armory/agent/operations/"} {
		w := newWorld(t, nil)
		w.local.answer = func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/our-id") {
				answerJSON(200, ours)(rw, r)
				return
			}
			answerJSON(404, missing)(rw, r)
		}
		w.local.name = "this server" // it answers itself what it lacks
		for _, tt := range []struct {
			id     string
			theirs http.HandlerFunc
			status int
			want   string
		}{
			{"our-id", hang, 200, ours}, // the other Clouddriver is not asked
			{"their-id", answerJSON(200, `{"agentId":"theirs"}`), 200, `{"agentId":"theirs"}`},
			{"their-id", answerJSON(404, springAnswer("404")), 404, missing},
			{"their-id", answerJSON(500, springAnswer("500")), 500, springAnswer("500")},
			{"..", answerJSON(200, `{}`), 400, "must not contain the segments"},
		} {
			w.setTheirs(tt.theirs)
			response, body := w.send(t, http.MethodGet, path+url.PathEscape(tt.id), "")
			if tt.id == ".." {
				response, body = w.send(t, http.MethodGet, path+"%2e%2e", "")
			}
			if response.StatusCode != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("%s%s: got %d %s, want %d %s", path, tt.id, response.StatusCode, body, tt.status, tt.want)
			}
		}
	}
}

// TestDisconnectGoesToTheSideOfTheAgent checks that nothing is guessed if this server cannot say whether it has the agent.
func TestDisconnectGoesToTheSideOfTheAgent(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Timeout = time.Second })
	const path = "/armory/agent/some%20agent/disconnect"
	for _, tt := range []struct {
		known  int // this server's answer about the agent
		status int
		asked  int
	}{{200, 405, 0}, {404, 200, 1}, {503, 503, 0}} {
		w.local.answer = func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet && r.URL.EscapedPath() == "/armory/agents/some%20agent":
				answerJSON(tt.known, springAnswer("0"))(rw, r)
			case r.Method == http.MethodPost:
				answerJSON(405, springAnswer("405"))(rw, r)
			default:
				t.Errorf("this server was asked %s %s", r.Method, r.URL)
			}
		}
		response, body := w.send(t, http.MethodPost, path, `{"clusterDriven":false}`)
		if asked := w.theirs.requests(); response.StatusCode != tt.status || len(asked) != tt.asked {
			t.Errorf("got %d %s, and %d requests to the other Clouddriver, want %d and %d", response.StatusCode, body, len(asked), tt.status, tt.asked)
		}
	}
}
