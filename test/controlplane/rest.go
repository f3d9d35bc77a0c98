//go:build unix

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Object is a Kubernetes object, or a part of one, as decoded from JSON.
type Object = map[string]any

// StatusError is an error response of the API server.
type StatusError struct {
	Code    int    // HTTP status
	Reason  string // for example NotFound
	Message string
}

// Error returns the status, the reason and the message.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Code, e.Reason, e.Message)
}

// The methods below act as the administrator. A path is a path of the API, for example
// /apis/apps/v1/namespaces/default/deployments. A body is a string or []byte of JSON, or any value
// that encodes as JSON. An error response is returned as *StatusError.

// Create posts a new object to the path of its list.
func (p *Plane) Create(ctx context.Context, path string, body any) error {
	return p.do(ctx, apiRequest{http.MethodPost, path, "application/json", body}, nil)
}

// Apply creates or changes an object at its path, by server-side apply as field manager
// "controlplane". It takes over fields of other managers.
func (p *Plane) Apply(ctx context.Context, path string, body any) error {
	path += "?fieldManager=controlplane&force=true"
	return p.do(ctx, apiRequest{http.MethodPatch, path, "application/apply-patch+yaml", body}, nil)
}

// Patch changes an object at its path by a JSON merge patch.
func (p *Plane) Patch(ctx context.Context, path string, body any) error {
	return p.do(ctx, apiRequest{http.MethodPatch, path, "application/merge-patch+json", body}, nil)
}

// Delete deletes the object at a path, and its dependents in the background.
func (p *Plane) Delete(ctx context.Context, path string) error {
	body := Object{"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
	return p.do(ctx, apiRequest{http.MethodDelete, path, "application/json", body}, nil)
}

// Get decodes the object or list at a path into a value. If into is nil, it only checks that it
// exists.
func (p *Plane) Get(ctx context.Context, path string, into any) error {
	return p.do(ctx, apiRequest{method: http.MethodGet, path: path}, into)
}

// Await polls a path until done returns true for the object or list. A missing object is polled
// again.
func (p *Plane) Await(ctx context.Context, path string, done func(Object) bool) error {
	return p.waitUntil(ctx, path+" meets the condition", func(ctx context.Context) error {
		var object Object
		if err := p.Get(ctx, path, &object); err != nil {
			return err
		}
		if !done(object) {
			return fmt.Errorf("got %.500v", object)
		}
		return nil
	})
}

// apiRequest is one request. A nil body sends no body.
type apiRequest struct {
	method, path, contentType string
	body                      any
}

func (p *Plane) do(ctx context.Context, r apiRequest, into any) error {
	return send(ctx, p.client, p.URL, r, into)
}

// send sends a request to a base URL and decodes the response, unless into is nil.
func send(ctx context.Context, client *http.Client, base string, r apiRequest, into any) error {
	request, err := r.httpRequest(ctx, base)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err // contains method and URL
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %w", r.method, r.path, parseStatusError(response.StatusCode, answer))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s %s: decode the response: %w", r.method, r.path, err)
	}
	return nil
}

func (r apiRequest) httpRequest(ctx context.Context, base string) (*http.Request, error) {
	body, err := encodeBody(r.body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, r.method, base+r.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if r.contentType != "" {
		request.Header.Set("Content-Type", r.contentType)
	}
	return request, nil
}

func encodeBody(body any) ([]byte, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(b), nil
	case []byte:
		return b, nil
	default:
		return json.Marshal(b)
	}
}

// parseStatusError decodes a Status object, or uses the text if it is not one.
func parseStatusError(code int, answer []byte) *StatusError {
	e := &StatusError{Code: code}
	if json.Unmarshal(answer, e) != nil || e.Message == "" {
		e.Reason, e.Message = http.StatusText(code), strings.TrimSpace(string(answer))
	}
	e.Code = code // the HTTP status takes precedence
	return e
}
