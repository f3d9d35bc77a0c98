package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	pipelineTimeout = 4 * time.Minute
	pollInterval    = 500 * time.Millisecond
	maxAnswerBytes  = 64 << 20
)

// orca is a client of one Orca.
type orca struct {
	url    string
	client http.Client
}

func newOrca(url string) *orca {
	return &orca{url: strings.TrimRight(url, "/"), client: http.Client{Timeout: time.Minute}}
}

// execution is what Orca tells of a pipeline.
type execution struct {
	Status string
	Stages []struct {
		Type, Status string
		Tasks        []struct{ Name, Status string }
		Context      struct {
			Exception struct {
				Details struct {
					Error  string
					Errors []string
				}
			}
			FailureMessage string
		}
	}
}

// isDone reports whether the pipeline has ended.
func (e execution) isDone() bool {
	return slices.Contains([]string{"SUCCEEDED", "TERMINAL", "CANCELED", "FAILED_CONTINUE", "STOPPED", "SKIPPED"}, e.Status)
}

// failure returns the stage and the tasks that failed, and the messages.
func (e execution) failure() string {
	var lines []string
	for _, s := range e.Stages {
		if s.Status == "SUCCEEDED" || s.Status == "NOT_STARTED" {
			continue
		}
		details := s.Context.Exception.Details
		lines = append(lines, fmt.Sprintf("%s %s: %s", s.Type, s.Status, strings.Join(append(details.Errors, details.Error, s.Context.FailureMessage), " ")))
	}
	return strings.Join(lines, "\n")
}

// run runs a pipeline until it ends.
func (o *orca) run(ctx context.Context, request map[string]any) (execution, error) {
	ctx, cancel := context.WithTimeout(ctx, pipelineTimeout)
	defer cancel()
	var started struct{ Ref string }
	if err := o.send(ctx, http.MethodPost, "/orchestrate", request, &started); err != nil {
		return execution{}, err
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	id := started.Ref[strings.LastIndexByte(started.Ref, '/')+1:]
	for {
		var e execution
		if err := o.send(ctx, http.MethodGet, "/pipelines/"+id, nil, &e); err != nil {
			return e, err
		}
		if e.isDone() {
			return e, nil
		}
		select {
		case <-ctx.Done():
			return e, fmt.Errorf("wait for pipeline %s, which is %s: %w", id, e.Status, ctx.Err())
		case <-tick.C:
		}
	}
}

func (o *orca) send(ctx context.Context, method, path string, body, into any) error {
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, o.url+path, payload)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-SPINNAKER-USER", "tester")
	response, err := o.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: got %s: %.300s", method, path, response.Status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: decode the answer: %w", method, path, err)
	}
	return nil
}
