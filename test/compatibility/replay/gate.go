package replay

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette/internal/compare"
)

// Gate asks what Gate asked a Clouddriver while Deck asked it, about the recorded cluster. recorded
// has a line for each request of Deck: status, path and body, separated by tabs.
// The rules are those for comparisons with Clouddriver.
func Gate(ctx context.Context, url string, recorded io.Reader, rules compare.Rules) (checks []Check, err error) {
	s := newSession(url)
	err = readLines(recorded, func(line string) error {
		fields := strings.SplitN(line, "\t", 3)
		if len(fields) != 3 {
			return fmt.Errorf("got %d fields, want status, path and body", len(fields))
		}
		status, err := strconv.Atoi(fields[0])
		if err != nil {
			return fmt.Errorf("read the status: %w", err)
		}
		check, err := s.askForGate(ctx, status, fields[1], fields[2], rules)
		checks = append(checks, check)
		return err
	})
	return checks, err
}

// askForGate asks what Gate asks for a request of Deck.
func (s *session) askForGate(ctx context.Context, status int, deckPath, body string, rules compare.Rules) (Check, error) {
	path, reason := clouddriverPath(deckPath)
	check := Check{Request: "GET " + deckPath, Skipped: reason, Want: answerText(status, []byte(body))}
	if reason != "" {
		return check, nil
	}
	r, err := s.send(ctx, "GET", path, "tester", "")
	check.Got = answerText(r.status, r.body)
	rule := rules.Find(compare.Form(path), path, compare.Difference{Field: fmt.Sprintf("status %d/%d", status, r.status)})
	switch {
	case status != r.status && rule != nil:
		check.Accepted = rule.Reason
	case status >= 500 && r.status < 500:
		check.Accepted = "what fails in Gate need not fail in a server behind it"
	}
	return check, err
}

func answerText(status int, body []byte) string {
	switch {
	case status != 200:
		return fmt.Sprint(status)
	case isEmpty(body):
		return "200, empty"
	}
	return "200, not empty"
}

// clouddriverPath returns the path that Gate asks Clouddriver for a path of its own, or why it cannot
// be told.
func clouddriverPath(path string) (own, reason string) {
	bare, query, _ := strings.Cut(path, "?")
	segments := strings.Split(strings.Trim(bare, "/"), "/")
	provider := "kubernetes"
	switch {
	case segments[0] == "projects" || len(segments) == 3 && (segments[2] == "tasks" || segments[2] == "pipelines" || segments[2] == "pipelineConfigs"):
		return "", "Gate asks Orca or Front50"
	case strings.Contains(bare, "/jobs/"):
		return "", "Gate has no such endpoint"
	case segments[0] == "serverGroups" && strings.HasPrefix(query, "applications="):
		return "", "Gate rejects it without asking"
	case segments[0] == "applications" && len(segments) == 2:
		return "/" + strings.Join(segments, "/"), ""
	case segments[0] == "applications" && len(segments) > 5 && segments[2] == "clusters" && segments[5] == "serverGroups":
		segments = append(segments[:5:5], append([]string{provider}, segments[5:]...)...)
		return "/" + strings.Join(segments, "/"), ""
	case segments[0] == "loadBalancers":
		return "/" + provider + "/" + strings.Join(segments, "/"), ""
	case (segments[0] == "securityGroups" || segments[0] == "firewalls") && len(segments) == 1:
		return "/securityGroups", ""
	case segments[0] == "securityGroups" || segments[0] == "firewalls":
		return securityGroupPath(segments, query)
	}
	return path, ""
}

// securityGroupPath: Gate asks for a provider, which is aws unless the request names one.
func securityGroupPath(segments []string, query string) (path, reason string) {
	if !strings.Contains(query, "provider=kubernetes") {
		return "", "Gate asks for provider aws"
	}
	return "/securityGroups/" + strings.Join(append([]string{segments[1], "kubernetes"}, segments[2:]...), "/"), ""
}
