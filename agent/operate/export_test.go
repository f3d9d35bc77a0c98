package operate

import "k8s.io/apimachinery/pkg/util/strategicpatch"

// RulesOf returns the rules by which a document says that kinds merge, for tests
// against a real one.
func RulesOf(apiVersion string, document []byte) (map[string]strategicpatch.LookupPatchMeta, error) {
	s, err := parseSchema(apiVersion, document)
	if err != nil {
		return nil, err
	}
	all := map[string]strategicpatch.LookupPatchMeta{}
	for kind, r := range s.strategic {
		all[kind] = r
	}
	return all, nil
}
