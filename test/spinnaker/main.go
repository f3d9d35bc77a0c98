// Command spinnaker runs pipelines over all Kubernetes stages in a real Orca, whose Clouddriver is a
// server of ours. It starts a control plane, Vedette, Redis and Orca:
//
//	go run ./test/spinnaker --orca-args orca.args
//
// orca.args is a Java argument file that holds "-cp CLASSPATH MAINCLASS" of an Orca. No empty entry may
// be in the class path, because Java takes it for the working directory. redis-server and Java 17
// must be on the PATH.
//
// With --orca it uses an Orca that is running, whose Clouddriver must be a Vedette with the account
// that --account names.
//
// Pipelines are in pipelines.yaml, with how each should end. The command ends with 1 if one ended
// otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	arguments, url, account, namespace, only string
}

func main() {
	var o options
	flag.StringVar(&o.arguments, "orca-args", os.Getenv("SPINNAKER_ORCA_ARGS"), "Java argument file of an Orca to start; defaults to SPINNAKER_ORCA_ARGS")
	flag.StringVar(&o.url, "orca", "", "URL of an Orca that is running, instead")
	flag.StringVar(&o.account, "account", "prod", "account to deploy to")
	flag.StringVar(&o.namespace, "namespace", fmt.Sprintf("stages-%d", time.Now().Unix()), "namespace, which must not exist")
	flag.StringVar(&o.only, "only", "", "run only pipelines whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	switch {
	case o.url != "":
		return runPipelines(ctx, newOrca(o.url), o, out)
	case o.arguments == "":
		return errors.New("no Orca: name its Java argument file with --orca-args, or one that is running with --orca")
	}
	if _, err := os.Stat(o.arguments); err != nil {
		return fmt.Errorf("find Orca: %w", err)
	}
	dir, err := os.MkdirTemp("", "vedette-spinnaker-")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "logs are in", dir)
	env, err := startEnvironment(ctx, dir)
	if err != nil {
		return err
	}
	defer env.stop()
	url, err := env.startOrca(ctx, o.arguments)
	if err != nil {
		return err
	}
	return runPipelines(ctx, newOrca(url), o, out)
}

// runPipelines runs all pipelines, and returns an error if one ended otherwise than it should.
func runPipelines(ctx context.Context, client *orca, o options, out io.Writer) error {
	pipelines, err := parsePipelines(pipelinesFile, o.account, o.namespace)
	if err != nil {
		return err
	}
	total, different := 0, 0
	for _, p := range pipelines {
		if !strings.Contains(p.Name, o.only) {
			continue
		}
		total++
		started := time.Now()
		e, err := client.run(ctx, p.request(o.account, o.namespace))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		end := e.Status
		if err != nil {
			end = err.Error()
		}
		isOK := err == nil && (p.end() == "ANY" || p.end() == e.Status)
		fmt.Fprintf(out, "%-5s %5.1fs  %s: %s\n", map[bool]string{true: "ok", false: "DIFF"}[isOK], time.Since(started).Seconds(), p.Name, end)
		if !isOK {
			different++
			fmt.Fprintln(out, e.failure())
		}
	}
	if different > 0 {
		return fmt.Errorf("%d of %d pipelines ended otherwise", different, total)
	}
	fmt.Fprintf(out, "%d pipelines ended as they should\n", total)
	return nil
}
