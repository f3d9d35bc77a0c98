package vedette_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decoders are the functions that build values of bytes. internal/exactjson and internal/yamlcount count what
// a document becomes before that, and exactjson compares names of members as bytes.
var decoders = map[string][]string{
	"encoding/json":                      {"Unmarshal", "NewDecoder"},
	"encoding/xml":                       {"Unmarshal", "NewDecoder"},
	"encoding/gob":                       {"NewDecoder"},
	"sigs.k8s.io/json":                   {"UnmarshalCaseSensitivePreserveInts", "UnmarshalStrict"},
	"k8s.io/apimachinery/pkg/util/json":  {"Unmarshal"},
	"k8s.io/apimachinery/pkg/util/yaml":  {"NewYAMLOrJSONDecoder", "NewYAMLToJSONDecoder", "Unmarshal", "ToJSON"},
	"sigs.k8s.io/yaml":                   {"Unmarshal", "UnmarshalStrict", "YAMLToJSON", "YAMLToJSONStrict"},
	"go.yaml.in/yaml/v3":                 {"Unmarshal", "NewDecoder"},
	"gopkg.in/yaml.v3":                   {"Unmarshal", "NewDecoder"},
	"go.yaml.in/yaml/v2":                 {"Unmarshal", "UnmarshalStrict", "NewDecoder"},
	"github.com/go-json-experiment/json": {"Unmarshal", "UnmarshalRead", "UnmarshalDecode"},
	"k8s.io/client-go/tools/clientcmd":   {"Load", "LoadFromFile"},
}

// The reasons for which a file may decode in another way.
const (
	isDecoder    = "it is what others use: it counts or checks a document before"
	ownBytes     = "this program wrote the bytes: its database, or what it has encoded itself"
	oneText      = "it decodes one text, number or list of texts, which has no members and is bounded"
	checkedFirst = "exactjson.Check, or a count of values, comes before or right after, within the limits of the body"
	sensitive    = "it wipes what it decodes, which a decoder with a cache of texts does not; Secrets and ConfigMaps have no members of users beside their data"
	shownOnly    = "it reads an object for display; nothing is decided by it, and the bytes are limited where they are read"
	ofOperator   = "the operator of the program wrote it, or names the program that prints it"
	ofCLI        = "a command decodes what the server that its user names has answered; only the command is harmed"
)

// otherDecoders are the files that decode without package exactjson. A new one needs a reason, because each
// decoder of bytes from outside is a way to exhaust memory, or to be read otherwise than by other programs.
var otherDecoders = map[string]string{
	"internal/exactjson/exactjson.go": isDecoder, "internal/configfile/documents.go": isDecoder, "server/artifacts/helm_index.go": isDecoder,
	"server/artifacts/helm_index_json.go": isDecoder, "agent/operate/manifest/manifest.go": checkedFirst, "server/manifest/manifest.go": checkedFirst,
	"server/task/request.go": checkedFirst, "server/api/operations/manifest.go": checkedFirst, "agent/operate/apply/managed_fields.go": checkedFirst,
	"server/artifacts/store.go":     "XML of the artifact store, 64 KiB of tags",
	"agent/cloud/exchange.go":       "XML of an error of STS, at most as long as an answer may be, of which two texts are read",
	"internal/notfound/notfound.go": "XML of an error of S3, 64 KiB, of which one text is read",

	"agent/operate/versioning/candidate.go": sensitive, "agent/operate/versioning/compare.go": sensitive, "agent/operate/versioning/digest.go": sensitive,
	"internal/mask/values.go": "it finds the values of Secrets to mask: an object that it reads as a Secret although it is none harms nobody",

	"server/peer_agents.go": shownOnly,

	"server/store/registry/account.go": ownBytes, "server/store/read/attributes_labels.go": ownBytes, "server/store/read/cursor.go": ownBytes,
	"server/store/read/feed.go": ownBytes, "server/store/history/operation.go": ownBytes, "server/store/read/scan.go": ownBytes, "server/store/read/selector.go": ownBytes, "server/task/task.go": ownBytes,
	"server/assignment/prepared.go": ownBytes, "server/tables/tables.go": ownBytes, "server/api/parameters/paging.go": oneText,

	"annotation.go": oneText, "server/attributes/from_object.go": oneText, "server/attributes/summary.go": oneText, "server/manifest/traffic.go": oneText,
	"server/manifest/description_types.go": oneText,

	"server/clouddriver/manifests/manifest.go": checkedFirst, "server/clouddriver/applications/network_policy.go": oneText, "server/clouddriver/applications/raw_resource_filter.go": shownOnly,

	"agent/bearer/bearer.go": ofOperator, "agent/kube/access.go": ofOperator, "agent/kube/credentials/end.go": ofOperator,
	"internal/formerchart/convert.go": checkedFirst, "internal/secret/document.go": ofOperator,
	"internal/logging/secretdocument.go": ofOperator, "internal/cli/contexts/file.go": ofOperator, "internal/compare/accepted.go": ofOperator,
	"internal/cli/manifests/codec.go": ofOperator, "internal/cli/manifests/document.go": ofOperator, "internal/configreload/ask.go": ofOperator,

	"cmd/vedette/change/apply.go": ofCLI, "cmd/vedette/change/history.go": ofCLI, "cmd/vedette/read/live.go": ofCLI, "cmd/vedette/read/logsource.go": ofCLI,
	"cmd/vedette/comparison/diff.go": ofCLI, "cmd/vedette/read/objectstream.go": ofCLI, "cmd/vedette/change/prune.go": ofCLI,
	"cmd/vedette/read/wait.go": ofCLI, "cmd/vedette/change/patch.go": ofOperator,
	"internal/cli/fanout/run.go": ofCLI, "cmd/vedette/change/scale.go": ofCLI, "cmd/vedette/read/watch.go": ofCLI, "internal/cli/describe/volume.go": ofCLI,
	"internal/cli/describe/generic.go": ofCLI, "internal/cli/describe/object.go": ofCLI, "internal/cli/describe/pod.go": ofCLI,
	"cmd/vedette/read/describe.go": ofCLI,
	"internal/cli/target/list.go":  ofCLI, "internal/client/changes.go": ofCLI, "internal/client/client.go": ofCLI,
	"internal/client/history.go": ofCLI, "internal/client/operation.go": ofCLI, "internal/client/types.go": ofCLI, "internal/compare/answer.go": ofCLI, "internal/compare/inventory.go": ofCLI,
	"internal/compare/value.go": ofCLI,
}

// TestOutsideBytesAreDecodedExactly checks that bytes from outside are decoded by internal/exactjson, or by a file that says why not.
func TestOutsideBytesAreDecodedExactly(t *testing.T) {
	found := decodersIn(t, "agent", "server", "cmd", "internal", "wire", ".")
	for _, file := range slices.Sorted(maps.Keys(found)) {
		if otherDecoders[file] == "" {
			t.Errorf("%s calls %s: decode with internal/exactjson and limits, or add the file here with the reason", file, strings.Join(found[file], ", "))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(otherDecoders)) {
		if found[file] == nil {
			t.Errorf("%s decodes nothing without internal/exactjson any more: remove it from the list", file)
		}
	}
}

// decodersIn returns the calls of decoders in the files of directories, without tests.
func decodersIn(t *testing.T, directories ...string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && directory == "." && path != ".", entry.IsDir() && strings.HasSuffix(path, "test") && path != directory:
				return fs.SkipDir
			case !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				if calls := decodersOf(t, path); len(calls) > 0 {
					found[filepath.ToSlash(path)] = calls
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func decodersOf(t *testing.T, path string) (calls []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]string{} // by the names that the file has for them
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // it was parsed
		name := defaultName(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = imported
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(decoders[packages[x.Name]], s.Sel.Name) {
				calls = append(calls, x.Name+"."+s.Sel.Name)
			}
		}
		return true
	})
	return calls
}

// defaultName returns the name of a package without the version at the end of its path.
func defaultName(path string) string {
	parts := strings.Split(path, "/")
	name := parts[len(parts)-1]
	if len(parts) > 1 && len(name) == 2 && name[0] == 'v' {
		name = parts[len(parts)-2]
	}
	return strings.TrimSuffix(name, ".v3")
}
