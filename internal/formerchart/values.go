package formerchart

import "go.yaml.in/yaml/v3"

// A Value is one of the predecessor's chart, or a group of them.
type Value struct {
	Path string
	// Now says what to set instead. It follows "set".
	Now string

	convert func(*converter, entry)
}

// Values returns the values of the predecessor's chart, ordered by path.
func Values() []Value {
	return []Value{
		{"agentyml", "agent.config, with the content of the file as YAML", (*converter).agentYML},
		{"config", "agent.config", (*converter).config},
		{"env", "agent.env", (*converter).environment},
		{"hub", "nothing: agents connect to a server, not to Armory's cloud", (*converter).hub},
		{"image.imagePullPolicy", "image.pullPolicy", (*converter).pullPolicy},
		{"image.imagePullSecrets", "image.pullSecrets", (*converter).pullSecrets},
		{"image.repository", "image.registry, or agent.image.repository for the last part of the name", (*converter).repository},
		{"kubeconfigs", "agent.kubeconfigs.ACCOUNT.secret; put files into a Secret: kubectl create secret generic NAME --from-file=config=FILE",
			(*converter).kubeconfigs},
		{"podAnnotations", "agent.podAnnotations", func(c *converter, e entry) { c.texts(e, "podAnnotations") }},
		{"podLabels", "agent.podLabels", func(c *converter, e entry) { c.texts(e, "podLabels") }},
		{"podResources", "agent.resources", (*converter).resources},
		{"replicas", "agent.replicas", (*converter).replicas},
	}
}

// An entry is a key of a map with its value.
type entry struct {
	path string
	key  *yaml.Node
	node *yaml.Node // without aliases
}
