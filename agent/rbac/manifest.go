package rbac

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

const apiGroup = "rbac.authorization.k8s.io"

// Write writes the rules as manifests for kubectl: a ClusterRole, a Role for each namespace, and
// their bindings. Comments mark what is missing now.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	r.writeHeader(&b)
	for rules := r.rules; len(rules) > 0; {
		next := slices.IndexFunc(rules, func(o *rule) bool { return o.namespace != rules[0].namespace })
		if next < 0 {
			next = len(rules)
		}
		r.writeRole(&b, rules[:next])
		rules = rules[next:]
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the rules: %w", err)
	}
	return nil
}

func (r *Report) writeHeader(b *strings.Builder) {
	missing, total := r.Missing()
	fmt.Fprintf(b, "# The rules that account %s needs in %s.\n", quote(string(r.account)), quote(r.host))
	switch {
	case missing == 0:
		fmt.Fprintf(b, "# Nothing is missing: the agent has all rights on the %d resources.\n", total)
	default:
		fmt.Fprintf(b, "# Rights on %d of %d resources are missing now, or a part of them; comments mark them.\n", missing, total)
	}
	if r.user == "" {
		fmt.Fprintln(b, "# This API server does not tell the name of the agent's user: replace REPLACE-ME.")
	}
}

// writeRole writes the rules of one namespace, or of the whole cluster, and their binding.
func (r *Report) writeRole(b *strings.Builder, rules []*rule) {
	kind, namespace := "ClusterRole", rules[0].namespace
	metadata := fmt.Sprintf("{name: %s}", quote(r.roleName()))
	if namespace != "" {
		kind, metadata = "Role", fmt.Sprintf("{name: %s, namespace: %s}", quote(r.roleName()), quote(namespace))
	}
	fmt.Fprintf(b, "---\napiVersion: %s/v1\nkind: %s\nmetadata: %s\nrules:\n", apiGroup, kind, metadata)
	for _, merged := range mergeRules(rules) {
		b.WriteString(merged.line())
	}
	fmt.Fprintf(b, "---\napiVersion: %[1]s/v1\nkind: %[2]sBinding\nmetadata: %[3]s\nroleRef: {apiGroup: %[1]s, kind: %[2]s, name: %[4]s}\nsubjects:\n- %[5]s\n",
		apiGroup, kind, metadata, quote(r.roleName()), subject(r.user))
}

// roleName returns the name of all roles and bindings. Names of RBAC objects may contain anything
// but what separates the segments of a path.
func (r *Report) roleName() string {
	return "vedette-" + strings.NewReplacer("/", "-", "%", "-").Replace(string(r.account))
}

// subject returns the subject of a binding.
func subject(user string) string {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		return fmt.Sprintf("{kind: ServiceAccount, name: %s, namespace: %s}", quote(name), quote(namespace))
	}
	if user == "" {
		user = "REPLACE-ME"
	}
	return fmt.Sprintf("{apiGroup: %s, kind: User, name: %s}", apiGroup, quote(user))
}

// mergedRule is rules that differ in their resources only.
type mergedRule struct {
	*rule
	resources []string
}

// mergeRules joins the rules that can share a line.
func mergeRules(rules []*rule) []mergedRule {
	var merged []mergedRule
	for _, r := range rules {
		at := slices.IndexFunc(merged, func(m mergedRule) bool {
			return m.group == r.group && m.name == r.name && slices.Equal(m.verbs, r.verbs) && slices.Equal(m.missing, r.missing)
		})
		if at < 0 {
			merged = append(merged, mergedRule{rule: r})
			at = len(merged) - 1
		}
		merged[at].resources = append(merged[at].resources, r.resource)
	}
	return merged
}

// line returns the rule in YAML, with what is missing of it as a comment.
func (m mergedRule) line() string {
	line := fmt.Sprintf("- {apiGroups: %s, resources: %s, verbs: %s", quoteAll(m.group), quoteAll(m.resources...), quoteAll(m.verbs...))
	if m.name != "" {
		line += ", resourceNames: " + quoteAll(m.name)
	}
	line += "}"
	switch {
	case len(m.missing) == len(m.verbs):
		line += " # missing"
	case len(m.missing) > 0:
		line += " # missing: " + strings.Join(m.missing, ", ")
	}
	return line + "\n"
}

// quote returns a text as JSON, which is YAML too, whatever it contains.
func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return `""` // unreachable: every string can be encoded
	}
	return string(quoted)
}

func quoteAll(texts ...string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
