package target

import (
	"strings"

	"github.com/vedette-io/vedette"
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
		for _, p := range parts {
			if p == "" {
				return nil, vedette.Errorf(vedette.Invalid, "%q has an empty part: use KIND/NAME or ACCOUNT/KIND/NAMESPACE/NAME", arg)
			}
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
	}
	return resourceArgs, nil
}

func parseKindsAndNames(args []string) ([]ResourceArg, error) {
	var resourceArgs []ResourceArg
	for kind := range strings.SplitSeq(args[0], ",") {
		if kind == "" {
			return nil, vedette.Errorf(vedette.Invalid, "%q has an empty kind", args[0])
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

// NotFoundError returns an error if the argument names an object and none was found.
func (arg ResourceArg) NotFoundError(found int) error {
	if arg.Name == "" || found > 0 {
		return nil
	}
	where := ""
	if arg.Account != "" {
		where = " in " + arg.Account
	}
	return vedette.Errorf(vedette.NotFound, "%s %q not found%s", arg.Kind, arg.Name, where)
}
