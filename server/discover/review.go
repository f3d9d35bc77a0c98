package discover

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// permanentError is an error that only a new configuration or new rights end.
type permanentError struct{ error }

// Unwrap returns the error itself.
func (e permanentError) Unwrap() error { return e.error }

func isPermanent(err error) bool {
	_, ok := errors.AsType[permanentError](err)
	return ok
}

// verbs are those that are needed.
var verbs = []string{"list", "watch"}

// choose returns what to list and watch: EndpointSlices if the cluster has them and both verbs are granted, else Endpoints.
func (a *access) choose(ctx context.Context, timeout time.Duration, slicesAreMissing bool) (*resource, error) {
	offered := false
	if !slicesAreMissing {
		var err error
		if offered, err = a.offersSlices(ctx, timeout); err != nil {
			return nil, err
		}
	}
	candidates := []*resource{endpointsResource}
	if offered {
		candidates = []*resource{sliceResource, endpointsResource}
	}
	missing := make([]string, 0, 4)
	for _, r := range candidates {
		denied, err := a.deniedVerbs(ctx, timeout, r)
		if err != nil {
			return nil, err
		}
		if len(denied) == 0 {
			return r, nil
		}
		missing = append(missing, strings.Join(denied, " and ")+" "+r.name)
	}
	return nil, permanentError{a.missingRights(ctx, timeout, candidates[0], missing)}
}

// offersSlices reports whether the cluster has EndpointSlices: from Kubernetes 1.21 on. Whoever may not read the groups learns it by
// the list.
func (a *access) offersSlices(ctx context.Context, timeout time.Duration) (bool, error) {
	var groups struct {
		Kind   string `json:"kind"`
		Groups []struct {
			Name     string `json:"name"`
			Versions []struct {
				Version string `json:"version"`
			} `json:"versions"`
		} `json:"groups"`
	}
	err := a.call(ctx, timeout, "/apis", nil, &groups)
	switch {
	case statusOf(err) == http.StatusForbidden:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("ask whether the cluster has EndpointSlices: %w", err)
	case groups.Kind != "APIGroupList":
		return false, fmt.Errorf("ask whether the cluster has EndpointSlices: the answer is not a list of API groups, but of kind %.40q: check the address and proxies", groups.Kind)
	}
	for _, g := range groups.Groups {
		if g.Name != sliceResource.group {
			continue
		}
		for _, v := range g.Versions {
			if v.Version == sliceResource.version {
				return true, nil
			}
		}
	}
	return false, nil
}

// deniedVerbs returns the verbs that are needed and not granted.
func (a *access) deniedVerbs(ctx context.Context, timeout time.Duration, r *resource) (denied []string, err error) {
	for _, verb := range verbs {
		attributes := map[string]any{"namespace": a.namespace, "verb": verb, "group": r.group, "version": r.version, "resource": r.name}
		request := map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"spec": map[string]any{"resourceAttributes": attributes}}
		var review struct {
			Kind   string `json:"kind"`
			Status *struct {
				Allowed bool `json:"allowed"`
			} `json:"status"`
		}
		err := a.call(ctx, timeout, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", request, &review)
		switch {
		case statusOf(err) == http.StatusForbidden:
			denied = append(denied, verb) // whoever may not even ask has no rights that RBAC grants to all
		case err != nil:
			return nil, fmt.Errorf("ask for the rights in namespace %s: %w", a.namespace, err)
		case review.Kind != "SelfSubjectAccessReview" || review.Status == nil:
			return nil, fmt.Errorf("ask for the rights in namespace %s: the answer has no status: check the address and proxies", a.namespace)
		case !review.Status.Allowed:
			denied = append(denied, verb)
		}
	}
	return denied, nil
}

// missingRights says which rights are needed, as YAML that can be applied.
func (a *access) missingRights(ctx context.Context, timeout time.Duration, r *resource, missing []string) error {
	subject := a.subject(ctx, timeout)
	return vedette.Errorf(vedette.Denied, `find the servers in namespace %s: %s may not %s. Apply this with kubectl apply -f, or set kubesvc.cluster to local or database:

apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: vedette-server-discovery, namespace: %s}
rules:
- {apiGroups: [%q], resources: [%s], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: vedette-server-discovery, namespace: %[4]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: vedette-server-discovery}
subjects:
- %[7]s
`, a.namespace, subject.text(), strings.Join(missing, ", nor "), quoteYAML(a.namespace), r.group, r.name, subject.yaml())
}

const serviceAccountPrefix = "system:serviceaccount:"

// subject is who sends the requests, as a user name of RBAC; empty if it is unknown.
type subject string

func (s subject) text() string {
	if s == "" {
		return "the server's account"
	}
	return fmt.Sprintf("%.300q", string(s))
}

// yaml returns the subject of a RoleBinding.
func (s subject) yaml() string {
	if s == "" {
		return "{kind: ServiceAccount, namespace: NAMESPACE, name: NAME} # of the server's pods"
	}
	if account, ok := strings.CutPrefix(string(s), serviceAccountPrefix); ok {
		namespace, name, _ := strings.Cut(account, ":")
		return fmt.Sprintf("{kind: ServiceAccount, namespace: %s, name: %s}", quoteYAML(namespace), quoteYAML(name))
	}
	return fmt.Sprintf("{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}", quoteYAML(string(s)))
}

// yamlWords are the words that a parser of YAML may not read as texts.
var yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// quoteYAML returns a text as it is if YAML reads it as a text, else in quotes.
func quoteYAML(text string) string {
	isLetter := text != "" && text[0] >= 'a' && text[0] <= 'z'
	if isLetter && isPodName(text) && !slices.Contains(yamlWords, text) {
		return text
	}
	quoted, _ := json.Marshal(text) // a string always has a JSON form, which YAML reads too
	return string(quoted)
}

// subject asks the API server who it takes this program for. Clusters before 1.28 do not say it; a token does.
func (a *access) subject(ctx context.Context, timeout time.Duration) subject {
	request := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	err := a.call(ctx, timeout, "/apis/authentication.k8s.io/v1/selfsubjectreviews", request, &review)
	if err == nil && review.Status.UserInfo.Username != "" {
		return subject(review.Status.UserInfo.Username)
	}
	return subjectOf(a.token())
}

// subjectOf returns the subject of a service account's token, which it does not verify.
func subjectOf(token string) subject {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if exactjson.Unmarshal(payload, &claims, exactjson.Limits{}) != nil || !strings.HasPrefix(claims.Subject, serviceAccountPrefix) {
		return ""
	}
	return subject(claims.Subject)
}
