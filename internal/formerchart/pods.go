package formerchart

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// hub was the connection to a service that no longer exists.
func (c *converter) hub(e entry) {
	c.note(e.key.Line, e.path, "is left out: agents connect to a server, not to Armory's cloud. Delete its credentials there")
}

func (c *converter) replicas(e entry) {
	if e.node.Kind != yaml.ScalarNode || e.node.ShortTag() != "!!int" || strings.HasPrefix(e.node.Value, "-") {
		c.problem(e.key, "%s is %s, want a whole number", e.path, describe(e.node))
		return
	}
	set(c.agent, "replicas", e.node)
}

// texts converts labels or annotations. The predecessor's chart quoted their values, so numbers were allowed.
func (c *converter) texts(e entry, name string) {
	converted := newMap()
	for _, below := range c.entries(e) {
		if name == "podLabels" && slices.Contains(chartLabels, below.key.Value) {
			c.note(below.key.Line, below.path, "is left out: the chart sets this label itself")
			continue
		}
		if c.is(below, yaml.ScalarNode, "a text") {
			setKey(converted, below.key.Value, text(below.node.Value))
		}
	}
	set(c.agent, name, converted)
}

// chartLabels are those that have no effect in podLabels (vedette.otherLabels in templates/_helpers.tpl).
var chartLabels = []string{"helm.sh/chart", "app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version",
	"app.kubernetes.io/managed-by", "app.kubernetes.io/component", "vedette.io/clouddriver"}

// setKey adds a key that may contain dots.
func setKey(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, text(key), value)
}

// resources converts podResources, which are a container's.
func (c *converter) resources(e entry) {
	converted := newMap()
	for _, group := range c.entries(e) {
		if name := group.key.Value; name != "requests" && name != "limits" {
			c.problem(group.key, "%s is unknown: resources have requests and limits", quote(group.path))
			continue
		}
		for _, quantity := range c.entries(group) {
			if c.is(quantity, yaml.ScalarNode, "a quantity") {
				if find(converted, group.key.Value) == nil {
					set(converted, group.key.Value, newMap())
				}
				setKey(find(converted, group.key.Value), quantity.key.Value, quantity.node)
			}
		}
	}
	set(c.agent, "resources", converted)
}

func (c *converter) pullPolicy(e entry) {
	policies := []string{"Always", "IfNotPresent", "Never"}
	if !slices.Contains(policies, e.node.Value) {
		c.problem(e.key, "%s must be %s", e.path, "Always, IfNotPresent or Never")
		return
	}
	set(c.image, "pullPolicy", e.node)
}

// pullSecrets converts one name, a list of names, or one as pods have it.
func (c *converter) pullSecrets(e entry) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	items := []*yaml.Node{e.node}
	if e.node.Kind == yaml.SequenceNode {
		items = e.node.Content
	}
	for _, item := range items {
		if item.Kind == yaml.MappingNode && len(item.Content) == 2 && item.Content[0].Value == "name" {
			item = item.Content[1]
		}
		if c.is(entry{e.path, e.key, item}, yaml.ScalarNode, "the name of a Secret") {
			list.Content = append(list.Content, text(item.Value))
		}
	}
	set(c.image, "pullSecrets", list)
}

// repository takes over the registry: the image itself is the predecessor's.
func (c *converter) repository(e entry) {
	if !c.is(e, yaml.ScalarNode, "the name of an image") {
		return
	}
	name, _, _ := strings.Cut(e.node.Value, "@")
	registry, _, hasRegistry := cutLast(name, "/")
	if !hasRegistry || registry == "armory" || strings.HasSuffix(registry, "docker.io/armory") {
		c.note(e.key.Line, e.path, "is the predecessor's image, and left out: image.registry has Vedette's")
		return
	}
	set(c.image, "registry", text(registry))
	shown := quote(registry)
	if registryName.MatchString(registry) {
		shown = registry
	}
	c.note(e.key.Line, e.path, "became image.registry %s. Send Vedette's images there: make push REPOSITORY=%[1]s", shown)
}

// registryName matches a host, perhaps with a port, and the path below it.
var registryName = regexp.MustCompile(`^[A-Za-z0-9.-]{1,100}(:[0-9]{1,5})?(/[A-Za-z0-9_.-]{1,100}){0,5}$`)

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// secretName matches environment variables whose values are secret.
var secretName = regexp.MustCompile(`(?i)(password|passwd|secret|token|credential|private_?key|api_?key)`)

// variableName matches names that are also keys of Secrets, and files.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,200}$`)

const environmentSecret = "spin-armory-agent-env"

// environment converts env. Values that are secret move into a Secret.
func (c *converter) environment(e entry) {
	if !c.is(e, yaml.SequenceNode, "a list of variables with name and value") {
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, item := range e.node.Content {
		variable := entry{e.path, item, item}
		converted, name := newMap(), ""
		for _, field := range c.entries(variable) {
			switch field.key.Value {
			case "name", "value":
				if !isNull(field.node) && c.is(field, yaml.ScalarNode, "a text") {
					set(converted, field.key.Value, text(field.node.Value))
				}
			case "valueFrom":
				set(converted, "valueFrom", field.node)
			default:
				c.problem(field.key, "%s is unknown: a variable has name and value", quote(field.path))
			}
		}
		if n := find(converted, "name"); n != nil {
			name = n.Value
		}
		switch value := find(converted, "value"); {
		case value != nil && find(converted, "valueFrom") != nil:
			c.problem(item, "a variable of %s has value and valueFrom, of which Kubernetes accepts one", e.path)
		case name == "":
			c.problem(item, "a variable of %s has no name", e.path)
		case !variableName.MatchString(name):
			c.problem(item, "the name of a variable of %s has other characters than letters, digits, dots, dashes and underscores", e.path)
		case name == "ARMORY_HUB":
			c.note(item.Line, e.path, "%s is left out: agents connect to a server, not to Armory's cloud", name)
		case value != nil && value.Value != "" && isSecretVariable(name, value.Value):
			c.secret(item.Line, Secret{environmentSecret, name, e.path + " " + name, []byte(value.Value)})
			remove(converted, "value")
			set(converted, "valueFrom.secretKeyRef.name", text(environmentSecret))
			set(converted, "valueFrom.secretKeyRef.key", text(name))
			fallthrough
		default:
			list.Content = append(list.Content, converted)
		}
	}
	if len(list.Content) > 0 {
		set(c.agent, "env", list)
	}
}

// isSecretVariable reports whether a variable's value is secret by its name, or because it is a URL with a password.
func isSecretVariable(name, value string) bool {
	if secretName.MatchString(name) {
		return true
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		return true
	}
	_, hasUser, _ := strings.Cut(value, "://")
	return strings.Contains(cmp.Or(hasUser, value), "@")
}

// secret hands out content that must not be among values.
func (c *converter) secret(line int, s Secret) {
	c.secrets = append(c.secrets, s)
	c.note(line, s.Path, "is secret, and belongs into the Secret %s", s.Name)
}
