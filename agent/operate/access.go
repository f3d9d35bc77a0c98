package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

const authorizationPath = "/apis/authorization.k8s.io/v1/"

// access asks the API server what the agent's credentials allow, by a review of itself. Every authenticated user may
// ask that.
func (r *run) access(ctx context.Context, a vedette.AccessArgs) result {
	if a.List {
		return r.listAccess(ctx, a.Namespace)
	}
	if a.Path != "" {
		return r.reviewAccess(ctx, object{"nonResourceAttributes": object{"verb": a.Action, "path": a.Path}}, nil)
	}
	attributes, warnings, err := r.resourceAttributes(ctx, a)
	if err != nil {
		return errorResult(err)
	}
	return r.reviewAccess(ctx, object{"resourceAttributes": attributes}, warnings)
}

// resourceAttributes returns what to ask about a kind. Like kubectl, it asks about a kind that the cluster does not
// serve as it is written, because permissions may name it.
func (r *run) resourceAttributes(ctx context.Context, a vedette.AccessArgs) (object, []string, error) {
	namespace := a.Namespace
	if namespace == "" && !a.AllNamespaces {
		namespace = r.DefaultNamespace()
	}
	attributes := object{"verb": a.Action, "resource": a.Kind, "name": a.Name, "subresource": a.Subresource, "namespace": namespace}
	if a.Kind == "*" {
		attributes["group"] = "*"
		return attributes, nil, nil
	}
	resource, err := r.ResolveResource(ctx, a.Target)
	if request.IsKindNotServed(err) {
		return attributes, []string{fmt.Sprintf("the server doesn't have a resource type '%s'", a.Kind)}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	attributes["group"], attributes["resource"] = resource.Kind.Group, resource.Plural
	if resource.Namespaced || a.AllNamespaces {
		return attributes, nil, nil
	}
	attributes["namespace"] = ""
	warning := fmt.Sprintf("resource '%s' is not namespace scoped", resource.Plural)
	if resource.Kind.Group != "" {
		warning += fmt.Sprintf(" in group '%s'", resource.Kind.Group)
	}
	return attributes, []string{warning}, nil
}

// review sends a review and decodes its status.
func (r *run) review(ctx context.Context, kind, plural string, spec object, status any) error {
	body, err := json.Marshal(object{"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
	if err != nil {
		return err
	}
	raw, _, err := r.Send(ctx, request.Request{Method: http.MethodPost, Path: authorizationPath + plural, Body: body,
		Accept: request.ContentTypeJSON, IsReview: true})
	if err != nil {
		return fmt.Errorf("ask what the agent may do: %w", err)
	}
	answer := struct {
		Status json.RawMessage `json:"status"`
	}{}
	if err := manifest.Decode(raw, &answer); err != nil {
		return vedette.Errorf(vedette.Unavailable, "the cluster's %s is invalid: %w", kind, err)
	}
	if err := manifest.Decode(answer.Status, status); err != nil {
		return vedette.Errorf(vedette.Unavailable, "the status of the cluster's %s is invalid: %w", kind, err)
	}
	return nil
}

func (r *run) reviewAccess(ctx context.Context, spec object, warnings []string) result {
	var status struct {
		Allowed bool   `json:"allowed"`
		Reason  string `json:"reason"`
		Error   string `json:"evaluationError"`
	}
	if err := r.review(ctx, "SelfSubjectAccessReview", "selfsubjectaccessreviews", spec, &status); err != nil {
		return errorResult(err)
	}
	return jsonResult(vedette.AccessResult{Allowed: status.Allowed, Reason: status.Reason, Error: status.Error, Warnings: warnings})
}

func (r *run) listAccess(ctx context.Context, namespace string) result {
	if namespace == "" {
		namespace = r.DefaultNamespace()
	}
	var status struct {
		Resources []struct {
			Verbs     []string `json:"verbs"`
			Groups    []string `json:"apiGroups"`
			Resources []string `json:"resources"`
			Names     []string `json:"resourceNames"`
		} `json:"resourceRules"`
		Paths []struct {
			Verbs []string `json:"verbs"`
			Paths []string `json:"nonResourceURLs"`
		} `json:"nonResourceRules"`
		Incomplete bool   `json:"incomplete"`
		Error      string `json:"evaluationError"`
	}
	if err := r.review(ctx, "SelfSubjectRulesReview", "selfsubjectrulesreviews", object{"namespace": namespace}, &status); err != nil {
		return errorResult(err)
	}
	access := vedette.AccessResult{Incomplete: status.Incomplete, Error: status.Error}
	for _, rule := range status.Resources {
		access.Rules = append(access.Rules,
			vedette.AccessRule{Verbs: rule.Verbs, Groups: rule.Groups, Resources: rule.Resources, Names: rule.Names})
	}
	for _, rule := range status.Paths {
		access.Rules = append(access.Rules, vedette.AccessRule{Verbs: rule.Verbs, Paths: rule.Paths})
	}
	return jsonResult(access)
}
