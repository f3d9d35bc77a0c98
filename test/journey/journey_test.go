// Package journey tests both halves together: from a real cluster to the store
// and its readers.
package journey

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/test/controlplane"
)

func TestJourney(t *testing.T) {
	plane := controlplane.New(t, controlplane.Options{Controllers: true})
	if err := plane.CreateWorkloads(t.Context(), controlplane.Workloads{}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "v.db")
	srv, err := server.Listen(server.Config{ID: "s1", Version: "test", REST: "127.0.0.1:0", GRPC: "127.0.0.1:0", Store: store.Config{URL: url, Log: log}}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- srv.Run(ctx) }()
	a := agent.New(agent.Config{
		Uplink:   uplink.Config{Target: srv.GRPC().String(), Creds: insecure.NewCredentials(), Agent: "a1"},
		Accounts: []agent.Account{{Name: "one", Access: watch.Access{KubeconfigFile: plane.Kubeconfig()}}},
	}, log)
	go func() { done <- a.Run(ctx) }()
	time.Sleep(15 * time.Second)
	cancel()
	fmt.Println(<-done, <-done)
	st, err := store.Open(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	feeds, err := st.Feeds(t.Context())
	for _, f := range feeds {
		fmt.Println(f.Feed, f.State, f.Mark, f.Objects, f.Message)
	}
	page, err := st.Objects(t.Context(), store.Query{Kinds: []vedette.Kind{{Name: "Pod"}}})
	fmt.Println(len(page.Items), page.Total, err)
}
