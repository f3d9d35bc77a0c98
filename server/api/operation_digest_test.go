package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
)

// historyDispatcher records operations as a dispatcher does, and is done at once.
type historyDispatcher struct {
	*store.Store
	fakeDispatcher
}

func (d *historyDispatcher) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	row := history.Operation{ID: op.ID, Account: op.Account, Verb: op.Args.Verb(), DryRun: op.DryRun, Requester: op.Requester, Server: "s", Digest: op.Digest}
	if err := d.BeginOperation(ctx, row); err != nil {
		return vedette.Outcome{State: vedette.Failed, Status: 409, Reason: vedette.ReasonAlreadyAccepted, Message: err.Error()}
	}
	out := d.fakeDispatcher.Execute(ctx, op)
	row.State, row.Status = out.State, out.Status
	_ = d.EndOperations(ctx, []history.Operation{row})
	return out
}

// TestIDWithOtherArguments sends operations with the id of another one: to the server that executed it, after
// its restart, and after a restart without its key.
func TestIDWithOtherArguments(t *testing.T) {
	const (
		scaleTo2 = `{"account":"dev","verb":"scale","kind":"deploy","name":"w","replicas":2,"id":"` + oneID + `"}`
		secret   = `{"account":"dev","verb":"apply","manifest":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"pin":"MTIz"}},"id":"` + twoID + `"}`
	)
	world := shopWorld(t)
	d := &historyDispatcher{Store: world.Store}
	start := func(key string) *validatingClient {
		cfg := configOf(world)
		cfg.Dispatch, cfg.OperationKey = d, []byte(key)
		return serve(t, cfg)
	}
	first := start("key")
	for _, body := range []string{scaleTo2, secret} {
		if status, out := first.post(body, "X-SPINNAKER-USER", "ann"); status != http.StatusOK {
			t.Fatalf("got %d %+v, want %d", status, out, http.StatusOK)
		}
	}
	for name, w := range map[string]*validatingClient{"the same server": first, "after a restart": start("key"), "without its key": start("")} {
		conflicts := map[string]bool{}
		for _, tt := range []struct{ what, body, user string }{
			{"other arguments", strings.Replace(scaleTo2, `"replicas":2`, `"replicas":3`, 1), "ann"},
			{"another target", strings.Replace(scaleTo2, `"w"`, `"v"`, 1), "ann"},
			{"another verb", strings.Replace(strings.Replace(scaleTo2, `"scale"`, `"restart"`, 1), `"replicas":2,`, "", 1), "ann"},
			{"another account", strings.Replace(scaleTo2, `"dev"`, `"prod-1"`, 1), "ann"},
			{"a dry run", strings.Replace(scaleTo2, `"verb"`, `"dryRun":true,"verb"`, 1), "ann"},
			{"another user", scaleTo2, "bob"},
			{"another user, whose name ends in a no-break space", scaleTo2, "ann\u00a0"},
			{"another user who guesses the Secret", strings.Replace(secret, twoID, twoID, 1), "bob"},
			{"another user who guesses the Secret wrongly", strings.Replace(secret, "MTIz", "MTI0", 1), "bob"},
		} {
			status, out := w.post(tt.body, "X-SPINNAKER-USER", tt.user)
			if status != http.StatusConflict || out.Error.Kind != "conflict" {
				t.Errorf("%s, %s: got %d %+v, want %d", name, tt.what, status, out, http.StatusConflict)
			}
			conflicts[strings.NewReplacer(oneID, "ID", twoID, "ID").Replace(out.Error.Message)] = true
		}
		if len(conflicts) != 1 {
			t.Errorf("%s: got the messages %v, want one that tells nothing about the other operation", name, conflicts)
		}
		if status, out := w.post(scaleTo2, "X-SPINNAKER-USER", "ann"); status != http.StatusOK || !out.Repeated {
			t.Errorf("%s, the same again: got %d %+v, want its outcome", name, status, out)
		}
		if status, _ := w.post(strings.Replace(secret, "MTIz", "MTI0", 1), "X-SPINNAKER-USER", "ann"); status != http.StatusConflict {
			t.Errorf("%s, another Secret: got %d, want %d", name, status, http.StatusConflict)
		}
		status, out := w.post(secret, "X-SPINNAKER-USER", "ann")
		if name == "without its key" {
			if status != http.StatusConflict || !strings.Contains(out.Error.Message, "cannot tell whether") {
				t.Errorf("%s, the same Secret: got %d %+v, want %d", name, status, out, http.StatusConflict)
			}
		} else if status != http.StatusOK || !out.Repeated {
			t.Errorf("%s, the same Secret: got %d %+v, want its outcome", name, status, out)
		}
	}
	if n := len(d.operations()); n != 2 {
		t.Errorf("got %d operations, want 2", n)
	}
}

// TestDigestsRevealNoDocuments checks that a digest of documents depends on the key and on the operation, so that what
// the database has can neither be guessed nor compared.
func TestDigestsRevealNoDocuments(t *testing.T) {
	op := vedette.Operation{ID: oneID, Account: "dev", Args: vedette.ApplyArgs{Manifest: []byte("kind: Secret")}}
	other := op
	other.ID = twoID
	last := func(digest string) string { return digest[strings.LastIndex(digest, ":")+1:] }
	first := api.DigestOf(op, "a")
	for what, digest := range map[string]string{"another key": api.DigestOf(op, "b"), "another id": api.DigestOf(other, "a")} {
		if last(digest) == last(first) || last(first) == "" {
			t.Errorf("%s: got %q and %q, want different digests of the manifest", what, first, digest)
		}
	}
	other = op
	other.Args = vedette.ApplyArgs{Manifest: []byte("kind: Secret # 2")}
	if x, y := strings.Split(first, ":"), strings.Split(api.DigestOf(other, "a"), ":"); x[1] != y[1] || x[3] == y[3] {
		t.Errorf("got %q and %q, want that they differ in what needs the key", x, y)
	}
	if len(first) > 255 {
		t.Errorf("got %d bytes, more than the column has", len(first))
	}
}
