package rbac

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// requester sends requests to an API server; *kube.Cluster is one.
type requester interface {
	Do(ctx context.Context, r kube.Request) (*http.Response, error)
}

const (
	// maxConcurrentReviews bounds the requests in flight. An account of all kinds needs hundreds.
	maxConcurrentReviews = 8
	maxReviewBytes       = 1 << 20
)

// review asks the API server which verbs of the rules the agent may not use now, by
// SelfSubjectAccessReviews, which every authenticated user may create.
func review(ctx context.Context, c requester, rules []*rule) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentReviews)
	var mu sync.Mutex
	for _, r := range rules {
		for _, verb := range r.verbs {
			group.Go(func() error {
				allowed, err := isAllowed(ctx, c, r, verb)
				if err != nil {
					return fmt.Errorf("ask for the right to %s %s: %w", verb, r.resource, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if !allowed {
					r.missing = append(r.missing, verb)
				}
				return nil
			})
		}
	}
	err := group.Wait()
	for _, r := range rules {
		slices.SortFunc(r.missing, func(a, b string) int { return slices.Index(allVerbs, a) - slices.Index(allVerbs, b) })
	}
	return err
}

// resourceAttributes are those of a SelfSubjectAccessReview.
type resourceAttributes struct {
	Namespace   string `json:"namespace,omitempty"`
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`
}

func isAllowed(ctx context.Context, c requester, r *rule, verb string) (bool, error) {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	var answer struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	err := post(ctx, c, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": resourceAttributes{Namespace: r.namespace, Verb: verb, Group: r.group,
			Resource: resource, Subresource: subresource, Name: r.name}},
	}, &answer)
	return answer.Status.Allowed, err
}

// readUser returns the name by which the API server knows the agent. It is empty with API servers
// before 1.28, which do not tell.
func readUser(ctx context.Context, c requester) (string, error) {
	var answer struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	err := post(ctx, c, "/apis/authentication.k8s.io/v1/selfsubjectreviews", map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, &answer)
	if kube.StatusCode(err) == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask for the name of the agent's user: %w", err)
	}
	return answer.Status.UserInfo.Username, nil
}

func post(ctx context.Context, c requester, path string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	resp, err := c.Do(ctx, kube.Request{Method: http.MethodPost, Path: path, ContentType: kube.AcceptJSON, Body: encoded})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReviewBytes))
	if err != nil {
		return fmt.Errorf("read the response of %s: %w", path, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		status := kube.ParseStatus(raw)
		status.Code = resp.StatusCode
		return status
	}
	if err := exactjson.Unmarshal(raw, answer, exactjson.Limits{}); err != nil {
		return vedette.Errorf(vedette.Unavailable, "%s was not answered in JSON: %w", path, err)
	}
	return nil
}
