package servers

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/databases"
)

// TestSeveralDatabases has two servers and two databases, each with an account. Whichever server is asked carries out operations, and whichever is asked then
// answers what they have written. While the second database is frozen, the account of the first goes on, and nothing is half of an answer.
func TestSeveralDatabases(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	second := databases.StartMariaDB(t, databases.Options{})
	in.shards = []sqldb.Shard{{Name: "b", URL: second.URL}}
	servers := []*oneServer{in.startServer("s0"), in.startServer("s1")}
	accounts := []vedette.AccountName{"in-first", "in-second"} // the second account goes where none is
	for i, account := range accounts {
		in.startAgent(vedette.AgentID(fmt.Sprint("a", i)), servers[i], account, "ConfigMap", "Deployment")
		for _, s := range servers {
			s.awaitLive(account, 2)
		}
	}
	writeAndRead := func(account vedette.AccountName, round int) {
		t.Helper()
		name, value := "shards-"+string(account), fmt.Sprint("value-", round)
		if out := servers[round%2].operate(account, configMap(name, value)); out.State != "done" {
			t.Fatalf("round %d of %s: got %+v", round, account, out)
		}
		if got := servers[round/2%2].readValue(account, name); got != value {
			t.Errorf("round %d of %s: server %d answers %q after server %d has written %q", round, account, round/2%2, got, round%2, value)
		}
	}
	for round := range 8 {
		for _, account := range accounts {
			writeAndRead(account, round)
		}
	}
	const application = "viewofshards"
	if err := plane.Create(t.Context(), "/apis/apps/v1/namespaces/default/deployments", deployment(application)); err != nil {
		t.Fatal(err)
	}
	for i, s := range servers {
		in.await(fmt.Sprintf("the cluster of both accounts at server %d", i), func() bool {
			var list map[string][]string
			s.get("/applications/"+application+"/clusters", &list)
			return len(list["in-first"]) > 0 && len(list["in-second"]) > 0
		})
	}
	second.Pause()
	t.Cleanup(second.Resume)
	start := time.Now()
	for round := range 4 {
		writeAndRead("in-first", round+100)
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("4 operations on the account of the other database took %v", took)
	}
	if code := servers[0].get("/vedette/v1/objects?name=shards-in-first", nil); code < http.StatusInternalServerError {
		t.Errorf("objects of all accounts: got status %d, want an error, because half of them are missing", code)
	}
	if code := servers[1].get("/health", nil); code != http.StatusOK {
		t.Errorf("health: got status %d, want that the server is used for the other accounts", code)
	}
	second.Resume()
	in.await("objects of all accounts", func() bool { return servers[0].get("/vedette/v1/objects?name=shards-in-first", nil) == http.StatusOK })
	in.await("an operation on the account of the second database", func() bool {
		return servers[0].operate("in-second", configMap("shards-in-second", "after")).State == "done"
	})
	for i, s := range servers {
		if got := s.readValue("in-second", "shards-in-second"); got != "after" {
			t.Errorf("server %d answers %q", i, got)
		}
	}
}
