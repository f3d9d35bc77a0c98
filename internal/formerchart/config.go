package formerchart

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	agentconfig "github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/nearest"
)

// configSecret is the Secret with what is secret in the configuration.
const configSecret, configSecretKey = "spin-armory-agent-config", "vedette-agent-secret.yml"

// A setting is a key of the agent's configuration, or a group of them.
type setting struct {
	name   string // as the chart wants it
	kind   string // type; empty for groups
	below  []*setting
	isList bool // of groups
}

// settings returns the agent's configuration as a tree.
func settings() *setting {
	root := &setting{}
	for _, key := range configfile.Keys(agentconfig.Config{}) {
		at := root
		steps := strings.Split(key.Path, ".")
		for i, step := range steps {
			name, isList := strings.CutSuffix(step, "[]")
			next := at.find(name)
			if next == nil {
				next = &setting{name: name}
				at.below = append(at.below, next)
			}
			next.isList = next.isList || isList
			if i == len(steps)-1 {
				next.kind = key.Type
				for _, alias := range key.Aliases {
					at.below = append(at.below, &setting{name: alias, kind: key.Type})
				}
			}
			at = next
		}
	}
	return root
}

// find returns a setting by its name in any notation that the agent reads.
func (s *setting) find(name string) *setting {
	i := slices.IndexFunc(s.below, func(b *setting) bool { return configfile.SameKey(b.name, name) })
	if i < 0 {
		return nil
	}
	return s.below[i]
}

func (s *setting) names() (names []string) {
	for _, b := range s.below {
		names = append(names, b.name)
	}
	return names
}

// agentYML reads the file that users gave with --set-file agentyml=FILE.
func (c *converter) agentYML(e entry) {
	if !c.is(e, yaml.ScalarNode, "the content of armory-agent.yml") {
		return
	}
	root, err := parse([]byte(e.node.Value))
	if err != nil {
		c.problem(e.key, "%s: %v", e.path, err)
		return
	}
	// The content of a block begins below its key, so lines are those of the file.
	shift(root, e.node.Line)
	c.file = c.known(entry{e.path, e.key, root}, settings(), "")
}

func shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, below := range n.Content {
		shift(below, lines)
	}
}

func (c *converter) config(e entry) { c.configured = c.known(e, settings(), "") }

// known returns a part of the configuration with the names of keys as the chart wants them. It reports unknown keys.
func (c *converter) known(e entry, s *setting, path string) *yaml.Node {
	converted := newMap()
	for _, below := range c.entries(e) {
		name, rest, hasDot := strings.Cut(below.key.Value, ".")
		child := s.find(name)
		if child == nil {
			c.problem(below.key, "%s is not a setting of the agent%s", quote(below.path), nearest.Hint(name, s.names()))
			continue
		}
		at := strings.TrimPrefix(path+"."+child.name, ".")
		c.lines[at] = below.key.Line
		if at == "hub" {
			c.hub(below)
			continue
		}
		if child.kind == "any" {
			c.note(below.key.Line, below.path, "has no effect, and is left out")
			continue
		}
		if isNull(below.node) {
			continue // as if the key was not there
		}
		if hasDot { // clouddriver.grpc: …
			inner := newMap()
			key := *below.key
			key.Value = rest
			inner.Line, inner.Content = key.Line, []*yaml.Node{&key, below.node}
			below.node = inner
		}
		value := c.knownValue(below, child, at)
		if known := find(converted, child.name); known != nil && known.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode {
			overlay(known, value)
		} else if known != nil {
			c.problem(below.key, "%s is there twice, in two notations", quote(below.path))
		} else {
			converted.Content = append(converted.Content, text(child.name), value)
		}
	}
	return converted
}

func (c *converter) knownValue(e entry, s *setting, path string) *yaml.Node {
	switch {
	case s.isList:
		if !c.is(e, yaml.SequenceNode, "a list") {
			return e.node
		}
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: e.node.Line}
		for i, item := range e.node.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			c.lines[at] = item.Line
			below := c.known(entry{fmt.Sprintf("%s[%d]", e.path, i), item, item}, s, at)
			below.Line = item.Line
			list.Content = append(list.Content, below)
		}
		return list
	case s.kind == "" && len(s.below) > 0:
		return c.known(e, s, path)
	default:
		return e.node
	}
}

// overlay writes the settings of over into m. Lists replace each other, as in the agent.
func overlay(m, over *yaml.Node) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		if known := find(m, key.Value); known != nil && known.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode {
			overlay(known, value)
		} else if known != nil {
			*known = *value
		} else {
			m.Content = append(m.Content, key, value)
		}
	}
}

// finish converts the configuration as a whole, after it is known from both values.
func (c *converter) finish() {
	config := newMap()
	for _, part := range []*yaml.Node{c.file, c.configured} {
		if part != nil {
			overlay(config, part)
		}
	}
	c.checkTypes(config)
	c.noSecretsInLists(config, settings(), "config", false)
	c.accounts(config)
	c.connection(config)
	hidden := c.hide(config, settings(), "")
	if len(hidden.Content) > 0 {
		content, err := yaml.Marshal(plain(hidden))
		if err != nil {
			c.problem(hidden, "the secrets of the configuration cannot be encoded")
			return
		}
		c.secrets = append(c.secrets, Secret{configSecret, configSecretKey, "config", content})
		set(c.agent, "configSecret", text(configSecret))
	}
	if len(config.Content) > 0 {
		set(c.agent, "config", config)
	}
}

// checkTypes lets the agent's own reader check values. Those that it replaces when it starts are left out.
func (c *converter) checkTypes(config *yaml.Node) {
	encoded, err := yaml.Marshal(withoutReferences(config))
	if err != nil {
		c.problem(config, "the configuration cannot be encoded")
		return
	}
	report := configfile.Parse("values", encoded, configfile.Options{Program: "vedette-agent", Reference: "docs/config-agent.md"},
		&agentconfig.Config{})
	for _, p := range report.Problems {
		path := p.Path
		for c.lines[path] == 0 && path != "" {
			path = path[:max(strings.LastIndexAny(path, ".["), 0)]
		}
		c.problems = append(c.problems, problem{c.lines[path], configfile.WithoutValues(errors.New(p.Message), agentconfig.Config{})})
	}
}

// withoutReferences returns a copy without values that refer to something else.
func withoutReferences(n *yaml.Node) *yaml.Node {
	copied := *n
	copied.Content = nil
	for i, below := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		if isReference(below.Value) {
			continue
		}
		if n.Kind == yaml.MappingNode {
			copied.Content = append(copied.Content, n.Content[i-1])
		}
		copied.Content = append(copied.Content, withoutReferences(below))
	}
	return &copied
}

// isReference reports whether a value is not the content itself, but where it is.
func isReference(value string) bool {
	return strings.HasPrefix(value, "encrypted:") || strings.HasPrefix(value, "encryptedFile:") || strings.Contains(value, "${")
}

// hide removes what is secret from the configuration, and returns it.
func (c *converter) hide(m *yaml.Node, s *setting, path string) *yaml.Node {
	hidden := newMap()
	for i := 0; i+1 < len(m.Content); {
		name, value := m.Content[i].Value, m.Content[i+1]
		child, at := s.find(name), strings.TrimPrefix(path+"."+name, ".")
		i += 2
		switch {
		case child == nil || value.Kind == yaml.MappingNode && len(child.below) == 0: // names that users choose
			continue
		case value.Kind == yaml.MappingNode:
			if below := c.hide(value, child, at); len(below.Content) > 0 {
				set(hidden, name, below)
			}
			if len(value.Content) > 0 {
				continue
			}
		case !strings.Contains(child.kind, "secret") || isEmpty(value) || isReference(value.Value):
			continue
		default:
			set(hidden, name, value)
			c.note(c.lines[at], "config."+at, "is secret, and belongs into the Secret %s", configSecret)
		}
		i -= 2
		m.Content = slices.Delete(m.Content, i, i+2)
	}
	return hidden
}

// noSecretsInLists reports what is secret in lists, such as accounts: a Secret can replace a list, but not complete it. Kubeconfigs get
// Secrets of their own.
func (c *converter) noSecretsInLists(n *yaml.Node, s *setting, path string, inList bool) {
	switch {
	case n.Kind == yaml.SequenceNode && s.isList:
		for i, item := range n.Content {
			c.noSecretsInLists(item, &setting{below: s.below}, fmt.Sprintf("%s[%d]", path, i), true)
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if child := s.find(n.Content[i].Value); child != nil {
				c.noSecretsInLists(n.Content[i+1], child, path+"."+child.name, inList)
			}
		}
	case inList && strings.Contains(s.kind, "secret") && s.name != "kubeconfigContents" && !isEmpty(n) && !isReference(n.Value):
		c.problem(n, "%s is secret, and the values would keep it: set it to a reference to a secret, or to a variable, ${NAME}", path)
	}
}

// connection converts how the agent finds its server.
func (c *converter) connection(config *yaml.Node) {
	address := remove(config, "clouddriver.grpc")
	if address == nil {
		c.note(0, "config.clouddriver.grpc", "is not set: the predecessor's chart then used Armory's cloud. The agent connects to "+
			"spin-clouddriver-grpc:9091 unless you set agent.server.address")
	} else {
		set(c.agent, "server.address", address)
	}
	if insecure := get(config, "clouddriver.insecure"); isTrue(insecure) {
		remove(config, "clouddriver.insecure")
		set(c.agent, "server.insecure", scalar("!!bool", "true"))
	} else if get(config, "clouddriver.tls") != nil {
		c.note(c.lines["clouddriver.tls"], "config.clouddriver.tls", "names files: mount them with agent.extraVolumes and agent.extraVolumeMounts, or "+
			"put them into a Secret as tls.crt, tls.key and ca.crt, and set agent.server.tlsSecret instead")
	} else {
		c.note(0, "agent.server.tlsSecret", "is not set: a server of the chart demands certificates of its agents. "+
			"docs/installation.md says how to get one")
	}
}

// get returns the value at a path of keys, or nil.
func get(m *yaml.Node, path string) *yaml.Node {
	key, rest, below := strings.Cut(path, ".")
	value := find(m, key)
	if value == nil || !below {
		return value
	}
	return get(value, rest)
}
