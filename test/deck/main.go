// Command deck shows Deck, Spinnaker's user interface, in a real browser while an account moves from a real Clouddriver to an agent of
// a server of ours, which stands in front of that Clouddriver:
//
//	go run ./test/deck --spinnaker DIR --deck DIR
//
// It starts a control plane, Redis, a stand-in for Front50, Clouddriver, our server, Orca, Gate, and Chromium. It visits Deck's pages,
// and runs actions from them, in three states: the account is Clouddriver's; it moves, because an agent is synchronizing for
// the first time, over a slow link; it has moved. In the second state the account moves while a pipeline runs.
//
// It fails if a request of a page fails, if a page shows a text in one state that it lacks in another, or if an action does not have its
// effect in the cluster. Pictures and texts of all pages remain in a directory.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type options struct {
	spinnaker, deck, chromium, out, only string
}

func main() {
	var o options
	flag.StringVar(&o.spinnaker, "spinnaker", "", "directory with Java argument files of Spinnaker's services: clouddriver.args, gate.args and orca.args")
	flag.StringVar(&o.deck, "deck", "", "directory with Deck as it is built for a web server: index.html and its scripts")
	flag.StringVar(&o.chromium, "chromium", "chromium", "program of the browser")
	flag.StringVar(&o.out, "out", "", "directory for pictures, texts and logs; a temporary one by default")
	flag.StringVar(&o.only, "only", "", "visit only pages whose name contains this, and run no other actions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// check reports everything that is missing, and how to get it.
func (o options) check() error {
	var missing []error
	for _, name := range []string{"clouddriver", "gate", "orca"} {
		if _, err := os.Stat(filepath.Join(o.spinnaker, name+".args")); o.spinnaker == "" || err != nil {
			missing = append(missing, fmt.Errorf("SPINNAKER has no %s.args, which holds \"-cp CLASSPATH MAINCLASS\": compile spinnaker/%[1]s, "+
				"and list its classes and all its dependencies", name))
		}
	}
	if _, err := os.Stat(filepath.Join(o.deck, "index.html")); o.deck == "" || err != nil {
		missing = append(missing, errors.New("DECK has no index.html: build spinnaker/deck with its packages core, kubernetes and docker; "+
			"index.html must load settings.js, which is added"))
	}
	for program, pkg := range map[string]string{"java": "openjdk-17-jre-headless", "redis-server": "redis-server", o.chromium: "chromium"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, fmt.Errorf("%w: install the package %s of Debian", err, pkg))
		}
	}
	return errors.Join(missing...)
}

func run(ctx context.Context, o options, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vedette-deck-")
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(dir, "pages")
	}
	fmt.Fprintln(out, "logs are in", dir)
	env, err := startEnvironment(ctx, o, dir, applications)
	if err != nil {
		return err
	}
	defer env.stop()
	w := &walker{env: env, options: o, out: out}
	w.page = &page{ctx: ctx, deck: env.deck.URL, pending: map[string]request{}}
	if w.page.browser, err = startBrowser(ctx, o.chromium, dir, w.page.listen); err != nil {
		return err
	}
	env.onStop(w.page.browser.Stop)
	if err := w.walkStates(ctx); err != nil {
		return err
	}
	wrong := report(out, w.results)
	fmt.Fprintln(out, "pictures and texts are in", o.out)
	if wrong > 0 {
		return fmt.Errorf("%d of %d steps are not as they should be", wrong, len(w.results))
	}
	return nil
}

// applications are the application whose pages are compared, and one for the actions of each state.
var applications = []string{"shop", "orders1", "orders2", "orders3"}

// states are where an account can be.
var states = []string{"clouddriver", "moving", "agent"}

// walker visits all pages in all states.
type walker struct {
	options
	env     *environment
	page    *page
	out     io.Writer
	results []result
}

func (w *walker) walkStates(ctx context.Context) error {
	for i, state := range states {
		if state == "moving" {
			if err := w.env.startAgent(); err != nil {
				return err
			}
		}
		if state == "agent" { // without the action during which it moves, it has not moved yet
			if err := w.awaitMove(ctx); err != nil {
				return err
			}
		}
		shop, err := newApp(ctx, w.env.plane, applications[0])
		if err != nil {
			return err
		}
		orders, err := newApp(ctx, w.env.plane, applications[i+1])
		if err != nil {
			return err
		}
		whileRunning := func(p *page) {
			if state == "moving" {
				w.move(p)
			}
		}
		for _, s := range append(shop.walk(), orders.actions(whileRunning)...) {
			if !strings.Contains(s.name, w.only) {
				continue
			}
			if err := w.step(ctx, state, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// move ends the slowness of the link, and waits until the account has moved, which it must not have done before.
func (w *walker) move(p *page) {
	if hasMoved, err := w.env.hasMoved(p.ctx); hasMoved || err != nil {
		p.err = cmp.Or(err, errors.New("the account has moved before all actions were run: the link was not slow enough"))
	}
	if p.err == nil {
		p.err = w.awaitMove(p.ctx)
	}
}

// awaitMove ends the slowness of the link, and waits until the account has moved.
func (w *walker) awaitMove(ctx context.Context) error {
	w.env.link.Heal()
	w.page.err = nil
	w.page.poll("the account to move", taskTimeout, func() (bool, error) { return w.env.hasMoved(ctx) })
	return w.page.err
}

// step does one step, and records what it showed. It returns an error only if there is no use in going on.
func (w *walker) step(ctx context.Context, state string, s step) error {
	p, started := w.page, time.Now()
	p.err = nil
	p.take()
	s.do(p)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := p.Exited(); err != nil {
		return fmt.Errorf("%w\n%s", err, p.Tail())
	}
	o := observation{err: p.err, text: p.text()}
	var all []string
	o.requests, all = p.take()
	for _, text := range all {
		if !accept(knownErrors, s.name, text) {
			o.errors = append(o.errors, text)
		}
	}
	w.add(state, s, o)
	fmt.Fprintf(w.out, "%5.1fs  %s: %s\n", time.Since(started).Seconds(), state, s.name)
	if o.err != nil {
		fmt.Fprintf(w.out, "        %v\n", o.err)
	}
	return w.keep(state, s.name, o.text)
}

func (w *walker) add(state string, s step, o observation) {
	for i := range w.results {
		if w.results[i].name == s.name {
			w.results[i].states = append(w.results[i].states, state)
			w.results[i].seen[state] = o
			return
		}
	}
	w.results = append(w.results, result{s.name, s.isAction, []string{state}, map[string]observation{state: o}})
}

// keep writes the text and the picture of a page.
func (w *walker) keep(state, name, text string) error {
	dir := filepath.Join(w.options.out, state)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o600); err != nil {
		return err
	}
	return w.page.screenshot(filepath.Join(dir, name+".png"))
}
