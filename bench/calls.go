package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

// calls is client-go's dynamic client in a process of its own, which is told
// what to call over a pipe.
type calls struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

// call is one request of it. Its own module describes the same.
type call struct {
	Verb                     string
	Group, Version, Resource string
	Namespace, Name          string
	Subresource              string
	Type                     string
	Body                     json.RawMessage `json:",omitempty"`
	MayMiss                  bool
}

func callOn(key vedette.Key, verb string) call {
	r, _ := sample.Resource(key.Kind)
	return call{Verb: verb, Group: key.Kind.Group, Version: r.Version, Resource: r.Plural, Namespace: key.Namespace, Name: key.Name}
}

func patchOf(key vedette.Key, subresource, patchType string, body []byte) call {
	c := callOn(key, "patch")
	c.Subresource, c.Type, c.Body = subresource, patchType, body
	return c
}

func (b *bench) startCalls(kubeconfig string) (*calls, error) {
	c := &calls{cmd: exec.Command(b.program("calls"), kubeconfig)}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	c.answers = json.NewDecoder(out)
	return c, c.cmd.Start()
}

func (c *calls) stop() {
	_ = c.in.Close()         // which ends it
	_ = c.cmd.Process.Kill() // one that hangs too
	_ = c.cmd.Wait()         // whatever it says to that
}

// make is a way to do a deed. How long it took is what the process measures
// itself: nothing but the calls.
func (c *calls) make(_ context.Context, d deed, s *subject) (time.Duration, error) {
	line, err := json.Marshal(d.calls(s))
	if err != nil {
		return 0, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	var answer struct {
		Nanoseconds int64
		Error       string
	}
	if err := c.answers.Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		return 0, fmt.Errorf("%s", answer.Error)
	}
	return time.Duration(answer.Nanoseconds), nil
}

// kubectl returns a way to do deeds: by a process for each. What kubectl has
// learned of the cluster's kinds it keeps on disk, as it does for users.
func (b *bench) kubectl(c *cluster) func(context.Context, deed, *subject) (time.Duration, error) {
	return func(ctx context.Context, d deed, s *subject) (time.Duration, error) {
		file := filepath.Join(b.dir, "manifest.json")
		args, manifest := d.kubectl(s)
		if manifest != nil {
			if err := os.WriteFile(file, manifest, 0o600); err != nil {
				return 0, err
			}
			args = append(args, "--filename", file)
		}
		began := time.Now()
		_, err := c.Kubectl(ctx, args...)
		return time.Since(began), err
	}
}
