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

// directClient is client-go's dynamic client in a separate process, which receives requests
// over a pipe.
type directClient struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

// apiRequest is one request. The type must match that of the module of the process.
type apiRequest struct {
	Verb                     string
	Group, Version, Resource string
	Namespace, Name          string
	Subresource              string
	Type                     string
	Body                     json.RawMessage `json:",omitempty"`
	MayMiss                  bool
}

func newRequest(key vedette.Key, verb string) apiRequest {
	r, _ := sample.Resource(key.Kind)
	return apiRequest{Verb: verb, Group: key.Kind.Group, Version: r.Version, Resource: r.Plural, Namespace: key.Namespace, Name: key.Name}
}

func newPatchRequest(key vedette.Key, subresource, patchType string, body []byte) apiRequest {
	c := newRequest(key, "patch")
	c.Subresource = subresource
	c.Type = patchType
	c.Body = body
	return c
}

func (b *bench) startDirectClient(kubeconfig string) (*directClient, error) {
	c := &directClient{cmd: exec.Command(b.program("calls"), kubeconfig)}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, err = c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.answers = json.NewDecoder(out)
	return c, c.cmd.Start()
}

func (c *directClient) stop() {
	_ = c.in.Close()         // ends the process
	_ = c.cmd.Process.Kill() // even if it hangs
	_ = c.cmd.Wait()         // it was killed
}

// execute runs an operation. It returns the duration that the process measured, which includes
// the requests only.
func (c *directClient) execute(_ context.Context, op operationCase, s *fixture) (time.Duration, error) {
	line, err := json.Marshal(op.requests(s))
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

// runKubectl returns a method that runs one kubectl process for each operation. kubectl caches
// discovery on disk, as it does for users.
func (b *bench) runKubectl(c *cluster) func(context.Context, operationCase, *fixture) (time.Duration, error) {
	return func(ctx context.Context, op operationCase, s *fixture) (time.Duration, error) {
		file := filepath.Join(b.dir, "manifest.json")
		args, manifest := op.kubectl(s)
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
