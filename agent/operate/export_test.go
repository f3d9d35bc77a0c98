package operate

import "k8s.io/apimachinery/pkg/util/strategicpatch"

// MergeRulesOf returns the rules by which a document says that kinds merge, for tests
// against a real one.
func MergeRulesOf(apiVersion string, document []byte) (map[string]strategicpatch.LookupPatchMeta, error) {
	s, err := parseSchema(apiVersion, document)
	if err != nil {
		return nil, err
	}
	all := map[string]strategicpatch.LookupPatchMeta{}
	for kind, r := range s.byKind {
		all[kind] = r
	}
	return all, nil
}
