package clouddriver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestServersAreListed checks the Scale Agent's list of instances.
func TestServersAreListed(t *testing.T) {
	var servers []discover.Server
	url := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Servers: func() []discover.Server { return servers }})
	const a, b = `{"id":"a","baseUrl":"http://10.0.0.1:7002","lastUpdated":1700000000123,"ready":true}`, `{"id":"b","baseUrl":"https://b:7002","lastUpdated":1700000000123,"ready":false}`
	known := time.UnixMilli(1700000000123)
	two := []discover.Server{{ID: "a", BaseURL: "http://10.0.0.1:7002", Ready: true, LastUpdated: known}, {ID: "b", BaseURL: "https://b:7002", LastUpdated: known}}
	for _, tt := range []struct {
		servers []discover.Server
		path    string
		status  int
		want    string
	}{
		{nil, "", 503, "the servers are not known yet"},
		{nil, "/a", 503, "the servers are not known yet"},
		{[]discover.Server{}, "", 200, "[]\n"},
		{two, "", 200, "[" + a + "," + b + "]\n"},
		{two, "/", 200, "[" + a + "," + b + "]\n"},
		{two, "/b", 200, b + "\n"},
		{two, "/B", 404, `there is no server \"B\"`},
		{two, "/c", 404, `"status":404`},
	} {
		servers = tt.servers
		response, answer := get(t, url+"/armory/clouddrivers"+tt.path)
		body := string(answer)
		if response.StatusCode != tt.status || tt.status == 200 && body != tt.want || !strings.Contains(body, tt.want) {
			t.Errorf("%s: got %d %s, want %d %s", tt.path, response.StatusCode, body, tt.status, tt.want)
		}
	}
	response, err := http.Post(url+"/armory/clouddrivers", "application/json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("got %s for POST, want 405", response.Status)
	}
}
