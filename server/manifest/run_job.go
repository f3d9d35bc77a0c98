package manifest

import "github.com/vedette-io/vedette"

// RunJobManifest returns a Job as the operation runJob deploys it: in a namespace, where
// one is given, and so that it runs though it has run before. Its deployment has
// a moniker of the application alone.
func RunJobManifest(m Manifest, namespace string) (Manifest, error) {
	if KindName(m.Kind()) != "job" {
		return nil, vedette.Errorf(vedette.Invalid, "Only kind of Job is accepted for the Run Job operation.")
	}
	if _, ok := m["metadata"].(object); !ok && m["metadata"] != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the metadata of the Job are no object")
	}
	m = m.Clone()
	meta := ensureObject(object(m), "metadata")
	if namespace != "" {
		meta["namespace"] = namespace
	}
	if err := m.checkStringValues(meta, "annotations"); err != nil {
		return nil, err
	}
	annotations := ensureObject(meta, "annotations")
	delete(annotations, annotReplace)
	delete(annotations, annotServerSide)
	annotations[annotRecreate] = "true"
	return m, nil
}
