// Command verify-spinnaker replays what real services of Spinnaker sent to a Clouddriver, and compares
// how a server of ours answers with what was recorded:
//
//   - Orca's calls for 55 pipelines, against a real control plane
//   - Gate's calls as Deck makes them, against the recorded cluster
//   - whom Fiat lets do what, against the recorded cluster
//
// Usage:
//
//	go run ./test/compatibility/cmd/verify-spinnaker --recordings DIR [--only orca,gate,fiat]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/vedette-io/vedette/internal/compare"
	"github.com/vedette-io/vedette/test/apistub"
	"github.com/vedette-io/vedette/test/compatibility"
	"github.com/vedette-io/vedette/test/compatibility/replay"
	"github.com/vedette-io/vedette/test/controlplane"
)

var errDifferent = errors.New("some answers are not as recorded")

func main() {
	recordings := flag.String("recordings", "", "directory of recordings; defaults to SPINNAKER_RECORDINGS or "+compatibility.DefaultRecordings)
	write := flag.String("write", "", "page of the documentation to write the results to")
	only := flag.String("only", "orca,gate,fiat", "comma-separated parts to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *recordings, strings.Split(*only, ","), *write); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, recordings string, parts []string, write string) error {
	dir, err := compatibility.FindRecordings(recordings)
	if err != nil {
		return err
	}
	var out strings.Builder
	isSame := true
	for _, part := range parts {
		verify := map[string]func(context.Context, string) ([]replay.Check, error){"orca": verifyOrca, "gate": verifyGate, "fiat": verifyFiat}[part]
		if verify == nil {
			return fmt.Errorf("unknown part %q: use orca, gate or fiat", part)
		}
		checks, err := verify(ctx, dir)
		isSame = replay.Print(io.MultiWriter(os.Stdout, &out), part, checks) && isSame
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	if write != "" {
		if err := compatibility.WriteSection(write, "spinnaker", "```\n"+out.String()+"```\n"); err != nil {
			return err
		}
	}
	if !isSame {
		return errDifferent
	}
	return nil
}

// withInstallation runs a server and an agent of a cluster.
func withInstallation(ctx context.Context, cfg compatibility.Config, use func(url string) ([]replay.Check, error)) ([]replay.Check, error) {
	state, err := os.MkdirTemp("", "vedette-verify-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(state)
	front50 := httptest.NewServer(compatibility.Front50Handler())
	defer front50.Close()
	cfg.Dir, cfg.Front50 = state, front50.URL
	in, err := compatibility.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer in.Stop()
	return use(in.URL())
}

// withRecordedCluster runs a server and an agent of the recorded objects.
func withRecordedCluster(ctx context.Context, dir string, cfg compatibility.Config, use func(url string) ([]replay.Check, error)) ([]replay.Check, error) {
	recording, err := compatibility.ReadRecording(dir)
	if err != nil {
		return nil, err
	}
	cfg.Accounts, err = recording.Accounts()
	if err != nil {
		return nil, err
	}
	api := apistub.Start(recording.Cluster)
	defer api.Close()
	cfg.Kubeconfig = api.Kubeconfig()
	return withInstallation(ctx, cfg, use)
}

func verifyOrca(ctx context.Context, dir string) ([]replay.Check, error) {
	calls, err := os.Open(filepath.Join(dir, "pipelines", "calls-orca-to-vedette.jsonl"))
	if err != nil {
		return nil, err
	}
	defer calls.Close()
	pipelines, err := newest(filepath.Join(dir, "pipelines", "orca-*-over-clouddriver.jsonl"))
	if err != nil {
		return nil, err
	}
	defer pipelines.Close()
	plane, err := controlplane.Start(ctx, controlplane.Options{Controllers: true, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer plane.Stop()
	// dev and locked are restricted to a namespace that exists.
	err = plane.Apply(ctx, "/api/v1/namespaces/dev-a", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "dev-a"}})
	if err != nil {
		return nil, err
	}
	if err := plane.AppendLog("started"); err != nil {
		return nil, err
	}
	kubeconfig, err := os.ReadFile(plane.Kubeconfig())
	if err != nil {
		return nil, err
	}
	return withInstallation(ctx, compatibility.Config{Kubeconfig: kubeconfig, Accounts: compatibility.DefaultAccounts()}, func(url string) ([]replay.Check, error) {
		return replay.Orca(ctx, url, calls, pipelines)
	})
}

// newest opens the last file of a pattern in alphabetical order.
func newest(pattern string) (io.ReadCloser, error) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no recording %s", pattern)
	}
	return os.Open(files[len(files)-1])
}

func verifyGate(ctx context.Context, dir string) ([]replay.Check, error) {
	recorded, err := os.Open(filepath.Join(dir, "gate", "clouddriver.tsv"))
	if err != nil {
		return nil, err
	}
	defer recorded.Close()
	rules, err := compare.AcceptedRules()
	if err != nil {
		return nil, err
	}
	return withRecordedCluster(ctx, dir, compatibility.Config{}, func(url string) ([]replay.Check, error) {
		return replay.Gate(ctx, url, recorded, rules)
	})
}

func verifyFiat(ctx context.Context, dir string) ([]replay.Check, error) {
	recorded, err := os.Open(filepath.Join(dir, "fiat", "who-may-clouddriver.tsv"))
	if err != nil {
		return nil, err
	}
	defer recorded.Close()
	fiat := httptest.NewServer(replay.FiatHandler())
	defer fiat.Close()
	return withRecordedCluster(ctx, dir, compatibility.Config{Fiat: fiat.URL}, func(url string) ([]replay.Check, error) {
		return replay.Fiat(ctx, url, recorded)
	})
}
