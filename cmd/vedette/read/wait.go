package read

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/condition"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const waitLong = `Wait until objects meet conditions, in one or more clusters.

--for takes condition=NAME[=VALUE], jsonpath='{EXPRESSION}'[=VALUE], create or delete. Several conditions
must hold one after the other; create is always waited for first.

Where an agent reports the kind without a gap, its reports are followed. Otherwise the cluster is read again and
again. That an object is gone is always asked of the cluster.`

type waitOptions struct {
	target.Flags
	conditions []string
	timeout    time.Duration
}

func newWait() *cobra.Command {
	var o waitOptions
	cmd := &cobra.Command{
		Use:   "wait [" + target.Usage + "] --for CONDITION",
		Short: "Wait until objects meet conditions in one or more clusters",
		Long:  waitLong,
		Example: `  vedette wait deployment web -n shop --for=condition=Available --account 'prod-*' --timeout 5m
  vedette wait pods -l app=web -n shop --for=jsonpath='{.status.phase}'=Running
  vedette wait -f job.yaml --for=condition=Complete --timeout 1h
  vedette wait pod/web-0 -n shop --for=delete`,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := o.newWaiter(cmd)
			if err != nil {
				return err
			}
			return w.run(cmd, args)
		},
	}
	o.AddFlags(cmd)
	o.AddSelectionFlags(cmd, "wait for")
	flags := cmd.Flags()
	flags.Lookup("all").Usage = "Select all objects of the kind in the namespace."
	flags.Lookup("yes").Hidden = true // nothing is changed
	flags.StringArrayVar(&o.conditions, "for", nil, "Condition to wait for. Can be repeated.")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "Time limit for all objects together. 0 checks once, a negative value waits for a week.")
	flags.StringVarP(&o.Change.Output, "output", "o", "", "Output format of the objects: name, json or yaml. Defaults to one line for each object.")
	return cmd
}

// waiter is one wait command.
type waiter struct {
	*waitOptions
	client     *client.Client
	conditions []condition.Condition
	deadline   time.Time
	matched    atomic.Int64 // objects that were found

	mu      sync.Mutex
	streams map[target.Target]*objectStream
	follow  func(*objectStream) // runs a stream until the command ends
}

func (o *waitOptions) newWaiter(cmd *cobra.Command) (*waiter, error) {
	if len(o.conditions) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "no condition: use --for, for example --for=condition=Ready")
	}
	if err := o.Change.Validate("json", "yaml"); err != nil {
		return nil, err
	}
	w := &waiter{waitOptions: o, streams: map[target.Target]*objectStream{}}
	for _, text := range o.conditions {
		c, err := condition.Parse(text)
		if err != nil {
			return nil, err
		}
		w.conditions = append(w.conditions, c)
	}
	slices.SortStableFunc(w.conditions, func(a, b condition.Condition) int { return rank(a) - rank(b) })
	w.deadline = time.Now().Add(o.timeout)
	if o.timeout < 0 {
		w.deadline = time.Now().Add(7 * 24 * time.Hour)
	}
	var err error
	w.client, err = connect.Client(cmd)
	return w, err
}

func rank(c condition.Condition) int {
	if c.Sort == condition.Create {
		return 0
	}
	return 1
}

func (w *waiter) has(sort condition.Sort) bool {
	return slices.ContainsFunc(w.conditions, func(c condition.Condition) bool { return c.Sort == sort })
}

func (w *waiter) run(cmd *cobra.Command, args []string) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	w.follow = func(s *objectStream) { streams.Go(func() { s.run(ctx) }) }
	w.Interleaved = true
	w.Change.Confirm() // nothing is changed, so --all needs no --yes
	err := w.ForEachTarget(cmd, args, w.waitForTarget)
	if err == nil && w.matched.Load() == 0 && !w.has(condition.Delete) {
		return vedette.Errorf(vedette.NotFound, "no matching resources found")
	}
	return err
}

// waitForTarget waits for one object, or for all objects of a selection, one after the other.
func (w *waiter) waitForTarget(ctx context.Context, run *fanout.Run, t target.Target) error {
	if t.Name != "" {
		return w.waitForObject(ctx, run, t, t)
	}
	poll := fanout.NewPoll()
	for {
		objects, err := t.Expand(ctx, run)
		if err != nil {
			return err
		}
		if len(objects) == 0 && w.has(condition.Create) && !run.HasFailures() {
			if !w.pause(ctx, poll.NextBackOff(), nil) {
				w.fail(ctx, run, t)
				return context.Cause(ctx)
			}
			continue
		}
		for _, object := range objects {
			if err := w.waitForObject(ctx, run, object, t); err != nil {
				return err
			}
		}
		return nil
	}
}

// pause waits for a duration, or until it is woken. It reports false if the time of the command is up.
func (w *waiter) pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	left := time.Until(w.deadline)
	if left <= 0 {
		return false
	}
	timer := time.NewTimer(min(d, left))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// fail reports that the time is up.
func (w *waiter) fail(ctx context.Context, run *fanout.Run, t target.Target) {
	switch {
	case ctx.Err() != nil: // the command was interrupted
	case w.timeout == 0:
		run.Failf("condition not met for %s", t.DisplayName())
	default:
		run.Failf("timed out waiting for the condition on %s", t.DisplayName())
	}
}

// maxStreams is how many streams a command has. Further objects, for example of many files, are read again and again.
const maxStreams = 16

// streamOf returns the stream for the objects that the user selected, nil for none.
func (w *waiter) streamOf(selected target.Target) *objectStream {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.streams[selected]; ok {
		return s
	}
	if len(w.streams) >= maxStreams {
		return nil
	}
	kind := schema.FromAPIVersionAndKind(selected.APIVersion, selected.Kind).GroupKind()
	s := newObjectStream(w.client, client.Query{Account: w.Account, Kind: kind.String(), Namespace: selected.Namespace, Name: selected.Name,
		Selector: selected.Selector})
	w.streams[selected] = s
	w.follow(s)
	return s
}

// liveInterval is how often the cluster is read although its agent reports the object.
const liveInterval = time.Minute

// objectWait is the wait for one object in one account.
type objectWait struct {
	*waiter
	run     *fanout.Run
	target  target.Target
	sub     *subscription
	uid     string // of the object when it was first read
	version string // that was read last
}

// waitForObject waits until an object meets all conditions.
func (w *waiter) waitForObject(ctx context.Context, run *fanout.Run, t, selected target.Target) error {
	o := &objectWait{waiter: w, run: run, target: t}
	if stream := w.streamOf(selected); stream != nil && w.timeout != 0 {
		o.sub = stream.subscribe(run.Account, t.Namespace, t.Name)
		defer o.sub.close()
	}
	for _, c := range w.conditions {
		out, met, err := o.wait(ctx, c)
		if !met {
			return err
		}
		run.CountSuccess()
		if o.uid != "" { // kubectl does not mention objects that did not exist from the start
			run.Report(out, t.DisplayName(), "condition met")
		}
	}
	return nil
}

// wait waits until the object meets a condition. It reports false if it has failed, which was printed.
func (o *objectWait) wait(ctx context.Context, c condition.Condition) (client.Outcome, bool, error) {
	poll := fanout.NewPoll()
	for {
		out, tree, ok, err := o.read(ctx)
		if !ok {
			return out, false, err
		}
		met, err := o.isMet(c, tree)
		switch {
		case err != nil:
			o.run.Failf("%s: %v", o.target.DisplayName(), err)
			return out, false, nil
		case met:
			return out, true, nil
		case tree == nil && c.Sort != condition.Create:
			o.run.Failf("%s not found", o.target.DisplayName())
			return out, false, nil
		}
		reported, met, ok := o.await(ctx, c, poll)
		if met {
			return reported, true, nil
		}
		if !ok {
			o.fail(ctx, o.run, o.target)
			if ctx.Err() != nil {
				return out, false, context.Cause(ctx)
			}
			return out, false, nil
		}
	}
}

// await waits until the cluster should be read again. It reports true for met if a report of the agent is enough, and
// false for ok if the time is up.
func (o *objectWait) await(ctx context.Context, c condition.Condition,
	poll *backoff.ExponentialBackOff) (out client.Outcome, met, ok bool) {
	pause := poll.NextBackOff()
	if o.sub == nil {
		return out, false, o.pause(ctx, pause, nil)
	}
	begin := time.Now()
	for {
		reported, isLive := o.sub.take()
		if reported.gone || reported.object != nil && c.Sort == condition.Delete && o.isReplacedBy(reported.object) {
			return out, false, true
		}
		if reported.object != nil && c.Sort != condition.Delete && isMetBy(reported.object, c) {
			// An older version than the one that was read may meet what the newer one does not. If none was read, the report
			// may be of an object that is gone.
			return outcomeOf(reported.object), isNewer(reported.object.ResourceVersion, o.version), true
		}
		left := pause - time.Since(begin)
		if isLive {
			left = liveInterval - time.Since(begin)
		}
		if left <= 0 {
			return out, false, true
		}
		if !o.pause(ctx, left, o.sub.wake) {
			return out, false, false
		}
	}
}

// isMetBy reports whether an object that an agent has reported meets a condition.
func isMetBy(reported *client.Object, c condition.Condition) bool {
	tree, err := decodeObject(reported.Manifest)
	if err != nil {
		return false
	}
	met, err := c.IsMet(tree)
	return err == nil && met
}

// isReplacedBy reports whether a reported object has the name of the object, and is another one.
func (o *objectWait) isReplacedBy(reported *client.Object) bool {
	tree, err := decodeObject(reported.Manifest)
	return err == nil && o.uid != "" && uidOf(tree) != o.uid
}

func uidOf(tree map[string]any) string {
	uid, _, _ := unstructured.NestedString(tree, "metadata", "uid") // an object that was not read has none
	return uid
}

// read reads the object from the cluster. The tree is nil if it does not exist.
func (o *objectWait) read(ctx context.Context) (out client.Outcome, tree map[string]any, ok bool, err error) {
	op := o.target.Operation(vedette.VerbGet)
	if o.timeout > 0 {
		op.Timeout = min(max(time.Until(o.deadline), time.Second), 30*time.Second)
	}
	out, ok, err = o.run.ReadIfExists(ctx, "wait for "+o.target.DisplayName(), op)
	switch {
	case !ok:
		return out, nil, false, err
	case out.State != vedette.Done:
		o.version = ""
		return out, nil, true, nil
	}
	if tree, ok = target.ObjectOf(o.run, o.target.DisplayName(), out); !ok {
		return out, nil, false, nil
	}
	o.matched.Add(1)
	object := unstructured.Unstructured{Object: tree}
	o.version = object.GetResourceVersion()
	if o.sub != nil {
		o.sub.setNamespace(object.GetNamespace())
	}
	return out, tree, true, nil
}

// isMet evaluates a condition on what was read. An object that was created anew is not the one whose deletion is
// waited for.
func (o *objectWait) isMet(c condition.Condition, tree map[string]any) (bool, error) {
	if o.uid == "" {
		o.uid = uidOf(tree)
	}
	switch {
	case c.Sort == condition.Delete:
		return tree == nil || uidOf(tree) != o.uid, nil
	case tree == nil:
		return false, nil
	}
	return c.IsMet(tree)
}

// decodeObject decodes an object with numbers as int64 and float64.
func decodeObject(raw []byte) (tree map[string]any, err error) {
	err = kjson.Unmarshal(raw, &tree)
	return tree, err
}

func outcomeOf(o *client.Object) client.Outcome {
	return client.Outcome{State: vedette.Done, Status: http.StatusOK, Keys: []client.Key{{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}},
		Objects: []json.RawMessage{o.Manifest}}
}

// isNewer reports whether a version is certainly newer than another one. If one of them is empty or not a number, that is not known.
func isNewer(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order > 0
}
