package manifest

import "github.com/vedette-io/vedette"

// RunJobManifest returns the manifest that the operation runJob deploys: in a namespace, if
// one is given, and with the strategy recreate, because a Job can run only once. The moniker of
// its deployment has only the application.
func RunJobManifest(m Manifest, namespace string) (Manifest, error) {
	if KindName(m.Kind()) != "job" {
		return nil, vedette.Errorf(vedette.Invalid, "Only kind of Job is accepted for the Run Job operation.")
	}
	if _, ok := m["metadata"].(object); !ok && m["metadata"] != nil {
		return nil, vedette.Errorf(vedette.Invalid, "the metadata of the Job must be an object")
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
