// Command verify-clouddriver compares Vedette's answers with those that a Clouddriver gave about a
// recorded cluster. An agent watches the recorded objects, and the server is asked every recorded
// request.
//
//	go run ./test/compatibility/cmd/verify-clouddriver --recording DIR [--form '/applications/APP*']
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/vedette-io/vedette/internal/compare"
	"github.com/vedette-io/vedette/test/apistub"
	"github.com/vedette-io/vedette/test/compatibility"
)

type options struct {
	recording  string
	forms      string
	path       string
	differing  bool
	asJSON     bool
	serverYAML string
	serve      bool
	write      string
}

func main() {
	var o options
	flag.StringVar(&o.recording, "recording", "", "directory of a recording; defaults to SPINNAKER_RECORDINGS or "+compatibility.DefaultRecordings)
	flag.StringVar(&o.forms, "form", "", "compare only paths of this form, as the report shows it; * stands for any text")
	flag.StringVar(&o.path, "path", "", "compare only this path, as it was recorded, and print both answers; * stands for any text")
	flag.BoolVar(&o.differing, "differing", false, "leave out forms without differences")
	flag.BoolVar(&o.asJSON, "json", false, "print the report as JSON")
	flag.StringVar(&o.serverYAML, "server-config", "", "YAML that is added to the server's configuration")
	flag.BoolVar(&o.serve, "serve", false, "compare nothing; serve the recorded cluster until Ctrl-C")
	flag.StringVar(&o.write, "write", "", "page of the documentation to write the results to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	if report != nil && !report.OK() {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (*compare.Report, error) {
	dir, err := compatibility.FindRecordings(o.recording)
	if err != nil {
		return nil, err
	}
	recording, err := compatibility.ReadRecording(dir)
	if err != nil {
		return nil, err
	}
	rules, err := compare.AcceptedRules()
	if err != nil {
		return nil, err
	}
	paths := selectPaths(recording.Answers.Paths, o)
	if len(paths) == 0 {
		return nil, fmt.Errorf("no recorded path matches")
	}
	accounts, err := recording.Accounts()
	if err != nil {
		return nil, err
	}
	api := apistub.Start(recording.Cluster)
	defer api.Close()
	state, err := os.MkdirTemp("", "vedette-verify-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(state)
	front50 := httptest.NewServer(compatibility.Front50Handler())
	defer front50.Close()
	in, err := compatibility.Start(ctx, compatibility.Config{Dir: state, Kubeconfig: api.Kubeconfig(), Accounts: accounts,
		Front50: front50.URL, Server: o.serverYAML})
	if err != nil {
		return nil, err
	}
	defer in.Stop()
	if o.serve {
		fmt.Printf("vedette-server: %s\nKubernetes:     %s\nlogs:           %s\n", in.URL(), api.URL(), state)
		<-ctx.Done()
		return nil, nil
	}
	server, err := compare.NewServer("vedette", in.URL(), compatibility.Header("tester"))
	if err != nil {
		return nil, err
	}
	if o.path != "" {
		if err := printAnswers(ctx, recording.Answers, server, paths); err != nil {
			return nil, err
		}
	}
	report, err := compare.Run(ctx, recording.Answers, server, paths, compare.Options{Rules: rules, ShowValues: true})
	if err != nil {
		return nil, err
	}
	return report, printReport(report, o)
}

func printReport(report *compare.Report, o options) error {
	if o.write != "" {
		if err := compatibility.WriteSection(o.write, "clouddriver", compatibility.Markdown(report)); err != nil {
			return err
		}
	}
	if o.asJSON {
		return report.PrintJSON(os.Stdout)
	}
	return report.Print(os.Stdout, o.differing)
}

func selectPaths(recorded []string, o options) []string {
	var paths []string
	for _, path := range recorded {
		if (o.forms == "" || compare.Matches(o.forms, compare.Form(path))) && (o.path == "" || compare.Matches(o.path, path)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// printAnswers prints the whole answers of both.
func printAnswers(ctx context.Context, clouddriver, vedette compare.Responder, paths []string) error {
	for _, path := range paths {
		a, err := clouddriver.Answer(ctx, path)
		if err != nil {
			return err
		}
		b, err := vedette.Answer(ctx, path)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n  clouddriver: %d %s\n  vedette:     %d %s\n\n", path, a.Status, a.Body, b.Status, strings.TrimSpace(string(b.Body)))
	}
	return nil
}
