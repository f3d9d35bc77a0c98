package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// roles are those of the recording's users. Fiat does not know other users.
var roles = map[string][]string{"tester": {"dev"}, "boss": {"dev", "ops"}, "stranger": {"guests"}, "anonymous": nil}

// applications are those of the recording. None is restricted.
var applications = []string{"api", "shop", "legacy"}

// FiatHandler answers as a Fiat that knows the recording's users: everyone may use the accounts prod
// and dev and all applications; account locked may be read by dev and written by ops.
func FiatHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /authorize/{user}", func(w http.ResponseWriter, r *http.Request) {
		owned, known := roles[r.PathValue("user")]
		if !known {
			http.Error(w, `{"status":404,"error":"Not Found"}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(permissionsOf(r.PathValue("user"), owned)) // the client may be gone
	})
	return mux
}

type grant struct {
	Name           string   `json:"name"`
	Authorizations []string `json:"authorizations"`
}

func permissionsOf(user string, owned []string) map[string]any {
	all := []string{"READ", "WRITE", "EXECUTE", "CREATE"}
	accounts := []grant{{"prod", all}, {"dev", all}}
	locked := grant{Name: "locked"}
	if slices.Contains(owned, "dev") {
		locked.Authorizations = append(locked.Authorizations, "READ")
	}
	if slices.Contains(owned, "ops") {
		locked.Authorizations = append(locked.Authorizations, "WRITE")
	}
	if locked.Authorizations != nil {
		accounts = append(accounts, locked)
	}
	var apps []grant
	for _, app := range applications {
		apps = append(apps, grant{app, all})
	}
	return map[string]any{"name": user, "accounts": accounts, "applications": apps, "serviceAccounts": []any{}, "roles": []any{},
		"admin": false, "legacyFallback": false, "allowAccessToUnknownApplications": false}
}

// operationsOf are the recorded operations, of which the recording has the begin.
var operationsOf = []string{
	`[{"scaleManifest":{"account":"locked","manifestName":"deployment api","location":"dev-a","replicas":1}}]`,
	`[{"scaleManifest":{"account":"prod","manifestName":"deployment api","location":"dev-a","replicas":1}}]`,
	`[{"deployManifest":{"account":"prod","source":"text","moniker":{"app":"api"},"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"who-may","namespace":"dev-a"}}]}}]`,
}

// Fiat asks as several users what Fiat decides about. recorded has a line for each request: user,
// path, status and body, separated by tabs. The server's Fiat is FiatHandler.
func Fiat(ctx context.Context, url string, recorded io.Reader) (checks []Check, err error) {
	s := newSession(url)
	err = readLines(recorded, func(line string) error {
		fields := strings.SplitN(line, "\t", 4)
		if len(fields) < 3 {
			return fmt.Errorf("got %d fields, want user, path and status", len(fields))
		}
		status, err := strconv.Atoi(fields[2])
		if err != nil {
			return fmt.Errorf("read the status: %w", err)
		}
		check, err := s.askAs(ctx, strings.TrimPrefix(fields[0], "-"), fields[1], status)
		checks = append(checks, check)
		return err
	})
	return checks, err
}

// clusterManifests are paths whose permissions Clouddriver does not check.
var clusterManifests = regexp.MustCompile(`^/manifests/[^/]+/[^/]+/[^/]+/cluster/`)

func (s *session) askAs(ctx context.Context, user, path string, status int) (Check, error) {
	check := Check{Request: fmt.Sprintf("%s as %q", path, user), Want: fmt.Sprint(status)}
	switch {
	case status == 0:
		check.Skipped = "Clouddriver did not answer"
	case strings.Contains(path, "/console"):
		check.Skipped = "the recorded cluster has no logs"
	}
	if check.Skipped != "" {
		return check, nil
	}
	method, body := "GET", ""
	if begin, isPost := strings.CutPrefix(path, "POST /kubernetes/ops "); isPost {
		method, path = "POST", "/kubernetes/ops"
		index := slices.IndexFunc(operationsOf, func(op string) bool { return strings.Contains(op, begin) })
		if index < 0 {
			return check, fmt.Errorf("no operation begins with %s", begin)
		}
		body = operationsOf[index]
	}
	r, err := s.send(ctx, method, path, user, body)
	check.Got = fmt.Sprint(r.status)
	if r.status == http.StatusForbidden && clusterManifests.MatchString(path) {
		check.Accepted = "the manifests of a cluster require READ on its account, which Clouddriver does not check (docs/decisions/0073-where-answers-differ-from-clouddriver.md)"
	}
	return check, err
}
