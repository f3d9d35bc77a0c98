package upgrade

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

const root = "../.."

func previous(t *testing.T) Version {
	t.Helper()
	v, err := Previous()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// both returns a file of the version before and of this one.
func both(t *testing.T, path string) (before, now string) {
	t.Helper()
	old, err := previous(t).ReadFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	current, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(old), string(current)
}

// missing returns what the first list has and the second does not, each once.
func missing(before, now []string) (gone []string) {
	for _, name := range before {
		if !slices.Contains(now, name) && !slices.Contains(gone, name) {
			gone = append(gone, name)
		}
	}
	return gone
}

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// firstColumns returns the names in the first columns of a page's tables.
func firstColumns(page string) (names []string) {
	for _, found := range tableRow.FindAllStringSubmatch(page, -1) {
		names = append(names, found[1])
	}
	return names
}

var aliases = regexp.MustCompile("Alias(?:es)?: ((?:`[^`]+`(?:, | and )?)+)")

// keys returns the keys of a reference of the configuration, with their aliases, which are keys beside them unless they have a path.
func keys(page string) (all []string) {
	for line := range strings.Lines(page) {
		row := tableRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		all = append(all, row[1])
		parent := row[1][:strings.LastIndex(row[1], ".")+1]
		for _, list := range aliases.FindAllStringSubmatch(line, -1) {
			for _, alias := range strings.Split(list[1], "`") {
				if alias = strings.Trim(alias, ", "); alias != "" && alias != "and" {
					all = append(all, alias, parent+alias)
				}
			}
		}
	}
	return all
}

// TestConfigurationIsStillAccepted compares the keys of both references, which tests compare with the programs. A key that was renamed
// stays as an alias.
func TestConfigurationIsStillAccepted(t *testing.T) {
	for _, page := range []string{"docs/config-agent.md", "docs/config-server.md"} {
		before, now := both(t, page)
		if len(firstColumns(before)) < 50 {
			t.Fatalf("%s: got %d keys, want all", page, len(firstColumns(before)))
		}
		for _, key := range missing(firstColumns(before), keys(now)) {
			t.Errorf("%s: %s is gone: keep it as an alias of its new name, or as a key without effect that says what there is instead", page, key)
		}
	}
}

var metricName = regexp.MustCompile(`\b(?:vedette|kubesvc)_[a-z0-9_]+\b`)

// TestMetricsStay compares the names of metrics. docs/metrics.md lists all that both programs serve.
func TestMetricsStay(t *testing.T) {
	before, now := both(t, "docs/metrics.md")
	names := metricName.FindAllString(before, -1)
	if len(names) < 50 {
		t.Fatalf("got %d names of metrics, want all", len(names))
	}
	for _, name := range missing(names, metricName.FindAllString(now, -1)) {
		t.Errorf("the metric %s is gone: dashboards and alerts of users need it", name)
	}
}

// TestWireStaysCompatible asks buf whether programs of both versions understand each other.
func TestWireStaysCompatible(t *testing.T) {
	if testing.Short() {
		t.Skip("needs buf, which takes minutes to compile")
	}
	dir := t.TempDir()
	paths := []string{"wire", "buf.yaml"}
	if _, err := previous(t).ReadFile(t.Context(), peerProtocol+"/peer.proto"); err == nil { // v0.1.0 has none
		paths = append(paths, peerProtocol)
	}
	for _, path := range paths {
		if err := previous(t).Extract(t.Context(), path, dir); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := bufBreaking(t.Context(), root, dir); err != nil {
		t.Errorf("the protocol is not compatible with that of %s:\n%s", previous(t).Name, out)
	}
	file := filepath.Join(dir, "wire", "vedette.proto") // as if the version before had a field more, and another number for one
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broken := regexp.MustCompile(`(?m)^message Ack \{\n`).ReplaceAllString(string(text), "message Ack {\n  string only_before = 999;\n")
	if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := bufBreaking(t.Context(), root, dir); err == nil || !strings.Contains(string(out), "999") {
		t.Errorf("a removed field is not noticed: %v\n%s", err, out)
	}
}

// peerProtocol has the protocol between servers.
const peerProtocol = "server/peer/peerproto"

// TestPeerProtocolIsCompared compares the protocol between servers with one that has a field more, as if the version before had it.
func TestPeerProtocolIsCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("needs buf, which takes minutes to compile")
	}
	dir := t.TempDir()
	for _, path := range []string{"buf.yaml", "wire/vedette.proto", peerProtocol + "/peer.proto", peerProtocol + "/coherence.proto"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for message, number := range map[string]string{"Open": "997", "Entry": "998"} {
			begin := "message " + message + " {\n"
			text = []byte(strings.Replace(string(text), begin, begin+"  string only_before = "+number+";\n", 1))
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := bufBreaking(t.Context(), root, dir)
	for _, number := range []string{"997", "998"} {
		if err == nil || !strings.Contains(string(out), number) {
			t.Errorf("a removed field is not noticed: %v\n%s\nwant %s in it", err, out, number)
		}
	}
}

func bufBreaking(ctx context.Context, now, before string) ([]byte, error) {
	against, err := filepath.Abs(before)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=tools/go.mod", "buf", "breaking", "--against", against)
	cmd.Dir = now
	return cmd.CombinedOutput()
}

// TestRESTStaysCompatible compares both descriptions of our REST API.
func TestRESTStaysCompatible(t *testing.T) {
	before, now := both(t, "server/api/openapi.yaml")
	problems := compareAPI(t, before, now)
	for _, p := range problems {
		t.Error(p)
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"a path is removed", "/vedette/v1/feeds:", "/vedette/v1/streams:", "/vedette/v1/feeds is gone"},
		{"a parameter is removed", "name: cursor", "name: position", "parameter cursor is gone"},
		{"a property is removed", "lagMs:", "delayMs:", "lagMs is gone"},
	} {
		if got := compareAPI(t, now, strings.ReplaceAll(now, tt.from, tt.to)); !strings.Contains(strings.Join(got, "\n"), tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func compareAPI(t *testing.T, before, now string) (problems []string) {
	t.Helper()
	load := func(text string) *openapi3.T {
		doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	was, is := load(before), load(now)
	c := &apiComparison{seen: map[[2]*openapi3.Schema]bool{}}
	for path, item := range was.Paths.Map() {
		if is.Paths.Value(path) == nil {
			c.report("the path %s is gone", path)
			continue
		}
		for method, operation := range item.Operations() {
			if current := is.Paths.Value(path).GetOperation(method); current != nil {
				c.operation(method+" "+path, operation, current)
				continue
			}
			c.report("%s %s is gone", method, path)
		}
	}
	return c.problems
}

// apiComparison collects what callers of the API before could not do any more.
type apiComparison struct {
	problems []string
	seen     map[[2]*openapi3.Schema]bool
}

func (c *apiComparison) report(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *apiComparison) operation(name string, before, now *openapi3.Operation) {
	for _, p := range before.Parameters {
		current := now.Parameters.GetByInAndName(p.Value.In, p.Value.Name)
		if current == nil {
			c.report("%s: the parameter %s is gone", name, p.Value.Name)
		}
	}
	for _, p := range now.Parameters {
		if was := before.Parameters.GetByInAndName(p.Value.In, p.Value.Name); p.Value.Required && (was == nil || !was.Required) {
			c.report("%s: the parameter %s is required now", name, p.Value.Name)
		}
	}
	if before.RequestBody != nil && now.RequestBody != nil {
		c.content(name+" request", before.RequestBody.Value.Content, now.RequestBody.Value.Content)
	}
	for status, response := range before.Responses.Map() {
		current := now.Responses.Value(status)
		if current == nil {
			c.report("%s: the response %s is gone", name, status)
			continue
		}
		c.content(name+" response "+status, response.Value.Content, current.Value.Content)
	}
}

func (c *apiComparison) content(name string, before, now openapi3.Content) {
	for mediaType, was := range before {
		is := now[mediaType]
		switch {
		case is == nil:
			c.report("%s: %s is gone", name, mediaType)
		case was.Schema != nil && is.Schema != nil:
			c.schema(name, was.Schema.Value, is.Schema.Value)
		}
	}
}

// schema compares two schemas. New properties and values are allowed, and required ones only in responses.
func (c *apiComparison) schema(name string, before, now *openapi3.Schema) {
	if before == nil || now == nil || c.seen[[2]*openapi3.Schema{before, now}] {
		return
	}
	c.seen[[2]*openapi3.Schema{before, now}] = true
	if before.Type != nil && (now.Type == nil || !slices.Equal(before.Type.Slice(), now.Type.Slice())) {
		c.report("%s: the type is another one", name)
	}
	for property, was := range before.Properties {
		if is := now.Properties[property]; is != nil {
			c.schema(name+"."+property, was.Value, is.Value)
			continue
		}
		c.report("%s: the property %s is gone", name, property)
	}
	if strings.Contains(name, " request") {
		for _, property := range missing(now.Required, before.Required) {
			c.report("%s: the property %s is required now", name, property)
		}
	}
	for _, value := range before.Enum {
		if !slices.Contains(now.Enum, value) && len(now.Enum) > 0 {
			c.report("%s: the value %v is gone", name, value)
		}
	}
	if before.Items != nil && now.Items != nil {
		c.schema(name+"[]", before.Items.Value, now.Items.Value)
	}
	for i, part := range before.AllOf {
		if i < len(now.AllOf) {
			c.schema(name, part.Value, now.AllOf[i].Value)
		}
	}
}

// TestChangelogHasAllReleases compares the changelog's sections with the releases, and checks its format.
func TestChangelogHasAllReleases(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	versions, err := Versions()
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for _, found := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(text), -1) {
		sections = append(sections, found[1])
	}
	if len(sections) != len(versions)+1 || sections[0] != "[Unreleased]" {
		t.Fatalf("got sections %q, want [Unreleased] and those of %d releases", sections, len(versions))
	}
	for i, v := range versions {
		section, number := sections[len(sections)-1-i], strings.TrimPrefix(v.Name, "v")
		if !regexp.MustCompile(`^\[` + regexp.QuoteMeta(number) + `\] - \d{4}-\d{2}-\d{2}$`).MatchString(section) {
			t.Errorf("got section %q, want [%s] and its date", section, number)
		}
		if !strings.Contains(string(text), "\n["+number+"]: ") {
			t.Errorf("[%s] has no link", number)
		}
	}
	for _, found := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains([]string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, found[1]) {
			t.Errorf("### %s is not one of the groups of Keep a Changelog", found[1])
		}
	}
}
