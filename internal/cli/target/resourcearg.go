package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// ResourceArg is one object, or all objects of a kind, as an argument names them.
type ResourceArg struct {
	Account, Kind, Namespace, Name string // All but the kind may be empty
}

// ParseResourceArgs parses KIND [NAME...], KIND/NAME... or ACCOUNT/KIND/NAMESPACE/NAME.... The
// forms are not ambiguous, because neither kinds nor names contain a slash.
func ParseResourceArgs(args []string) ([]ResourceArg, error) {
	if !strings.Contains(args[0], "/") {
		return parseKindsAndNames(args)
	}
	var resourceArgs []ResourceArg
	for _, arg := range args {
		parts := strings.Split(arg, "/")
		if slices.Contains(parts, "") {
			return nil, vedette.Errorf(vedette.Invalid, "%q has an empty part: use KIND/NAME or ACCOUNT/KIND/NAMESPACE/NAME", arg)
		}
		switch len(parts) {
		case 2:
			resourceArgs = append(resourceArgs, ResourceArg{Kind: parts[0], Name: parts[1]})
		case 4:
			if parts[2] == "_" { // cluster-scoped
				parts[2] = ""
			}
			resourceArgs = append(resourceArgs, ResourceArg{Account: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]})
		default:
			return nil, vedette.Errorf(vedette.Invalid, "%q is neither KIND/NAME nor ACCOUNT/KIND/NAMESPACE/NAME", arg)
		}
		if err := checkKind(resourceArgs[len(resourceArgs)-1].Kind); err != nil {
			return nil, err
		}
	}
	return resourceArgs, nil
}

// checkKind rejects what is no name of a kind in any cluster, and would mean a list of kinds in a request.
func checkKind(kind string) error {
	for _, r := range kind {
		if r <= ' ' || r >= 0x7f || r == ',' {
			return vedette.Errorf(vedette.Invalid, "%.100q is not a kind: names of kinds have letters, digits, dots and hyphens only", kind)
		}
	}
	return nil
}

func parseKindsAndNames(args []string) ([]ResourceArg, error) {
	var resourceArgs []ResourceArg
	for kind := range strings.SplitSeq(args[0], ",") {
		if kind == "" {
			return nil, vedette.Errorf(vedette.Invalid, "%q has an empty kind", args[0])
		}
		if err := checkKind(kind); err != nil {
			return nil, err
		}
		if len(args) == 1 {
			resourceArgs = append(resourceArgs, ResourceArg{Kind: kind})
		}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, vedette.Errorf(vedette.Invalid, "%q must be a name, because it follows the kind %s: use KIND NAME or KIND/NAME", name,
					args[0])
			}
			resourceArgs = append(resourceArgs, ResourceArg{Kind: kind, Name: name})
		}
	}
	return resourceArgs, nil
}

// NotFoundError returns an error if the argument names an object and none was found. If the accounts include some of which
// nothing is known, the object may exist there.
func (arg ResourceArg) NotFoundError(found int, unknown []client.AccountNote) error {
	if arg.Name == "" || found > 0 {
		return nil
	}
	where := ""
	if arg.Account != "" {
		where = " in " + arg.Account
	}
	if len(unknown) == 0 {
		return vedette.Errorf(vedette.NotFound, "%s %q not found%s", arg.Kind, arg.Name, where)
	}
	return vedette.Errorf(vedette.Unavailable, "%s %q was not found%s, but it may exist: %s", arg.Kind, arg.Name, where, notKnownOf(unknown))
}

// maxNotes is how many accounts a message names.
const maxNotes = 10

func notKnownOf(notes []client.AccountNote) string {
	var texts []string
	for _, n := range notes[:min(len(notes), maxNotes)] {
		texts = append(texts, output.Sanitize(n.Account+": "+n.Message))
	}
	if more := len(notes) - maxNotes; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more accounts", more))
	}
	return strings.Join(texts, "; ")
}
