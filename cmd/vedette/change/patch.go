package change

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

type patchOptions struct {
	objectFlags
	patch, file, patchType string
}

func newPatch() *cobra.Command {
	var o patchOptions
	cmd := &cobra.Command{
		Use:   "patch " + target.Usage + " -p PATCH",
		Short: "Change fields of objects in one or more clusters",
		Example: `  vedette patch deployment web -n shop -p '{"spec":{"replicas":3}}' --account 'prod-*'
  vedette patch node n1 --type merge --patch-file patch.yaml
  vedette patch pod web-0 --type json -p '[{"op":"replace","path":"/metadata/labels/a","value":"b"}]'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Change.ValidateServer(); err != nil {
				return err
			}
			patch, err := o.load()
			if err != nil {
				return err
			}
			return o.ForEachObject(cmd, args, func(ctx context.Context, run *fanout.Run, t target.Target) error { return o.run(ctx, run, t, patch) })
		},
	}
	o.addFlags(cmd, "patch", "kubectl-patch")
	flags := cmd.Flags()
	flags.StringVarP(&o.patch, "patch", "p", "", "The patch, as JSON or YAML.")
	flags.StringVar(&o.file, "patch-file", "", "File with the patch, as JSON or YAML.")
	flags.StringVar(&o.patchType, "type", "strategic", "Type of the patch: strategic, merge or json. Custom resources do not accept strategic.")
	return cmd
}

// load returns the patch. It is checked here, because each account would reject it for the same reason.
func (o patchOptions) load() ([]byte, error) {
	raw := []byte(o.patch)
	switch {
	case o.patch != "" && o.file != "":
		return nil, vedette.Errorf(vedette.Invalid, "--patch and --patch-file exclude each other")
	case o.patch == "" && o.file == "":
		return nil, vedette.Errorf(vedette.Invalid, "no patch: use --patch or --patch-file")
	case o.file != "":
		var err error
		raw, err = os.ReadFile(o.file)
		if err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "read the patch: %w", err)
		}
	}
	patchType := vedette.PatchType(strings.ToLower(o.patchType))
	if patchType != vedette.StrategicPatch && patchType != vedette.MergePatch && patchType != vedette.JSONPatch {
		return nil, vedette.Errorf(vedette.Invalid, "invalid --type %q: use strategic, merge or json", o.patchType)
	}
	if !utf8.Valid(raw) {
		return nil, vedette.Errorf(vedette.Invalid, "the patch is not valid UTF-8")
	}
	raw, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the patch is neither JSON nor YAML: %w", err)
	}
	var object map[string]any
	var steps []map[string]any
	switch {
	case patchType == vedette.JSONPatch && json.Unmarshal(raw, &steps) != nil:
		return nil, vedette.Errorf(vedette.Invalid,
			`a patch of the type json must be a list of steps, for example [{"op":"remove","path":"/metadata/labels/a"}]`)
	case patchType != vedette.JSONPatch && (json.Unmarshal(raw, &object) != nil || object == nil):
		return nil, vedette.Errorf(vedette.Invalid,
			`a patch of the type %s must be an object, for example {"metadata":{"labels":{"a":"b"}}}`, patchType)
	}
	return raw, nil
}

func (o patchOptions) run(ctx context.Context, run *fanout.Run, t target.Target, patch []byte) error {
	what := "patch " + t.DisplayName()
	before, _, ok, err := readForChange(ctx, run, what, t)
	if !ok {
		return err
	}
	out, ok, err := run.Execute(ctx, what, client.Operation{Args: vedette.PatchArgs{Target: t.Reference(),
		Type: vedette.PatchType(strings.ToLower(o.patchType)), Patch: patch, FieldManager: o.manager}})
	if !ok {
		if out.Status == http.StatusUnsupportedMediaType {
			run.Warnf("%s: the kind of %s does not accept patches of the type %s: use --type merge", run.Account, t.DisplayName(), o.patchType)
		}
		return err
	}
	word := "patched"
	if isUnchanged(o.Change, before, out) {
		word += " (no change)"
	}
	run.Report(out, t.DisplayName(), word)
	return nil
}

// splitPairs separates the arguments that select objects from those that change them, which follow: key=value and key-.
func splitPairs(args []string, noun string) (resources, pairs []string, err error) {
	for _, arg := range args {
		isPair := strings.Contains(arg, "=") && arg[0] != '=' || strings.HasSuffix(arg, "-") && arg != "-"
		switch {
		case isPair:
			pairs = append(pairs, arg)
		case len(pairs) > 0:
			return nil, nil, vedette.Errorf(vedette.Invalid, "all resources must be specified before %s changes: %s", noun, arg)
		default:
			resources = append(resources, arg)
		}
	}
	return resources, pairs, nil
}
