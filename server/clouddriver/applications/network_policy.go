package applications

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/clouddriver/web"
)

// securityGroupRule allows traffic through one port. Clouddriver adds the name of its class.
type securityGroupRule struct {
	Class      string      `json:"class"`
	Protocol   string      `json:"protocol,omitempty"`
	PortRanges []portRange `json:"portRanges,omitempty"` // empty: all ports
}

// portRange has a number or a name. The end equals the start: like Clouddriver, it ignores endPort.
type portRange struct {
	Start     *int32 `json:"startPort,omitempty"`
	End       *int32 `json:"endPort,omitempty"`
	StartName string `json:"startPortName,omitempty"`
	EndName   string `json:"endPortName,omitempty"`
}

const (
	securityGroupClass = "com.netflix.spinnaker.clouddriver.kubernetes.caching.view.model.KubernetesSecurityGroup"
	portRuleClass      = securityGroupClass + "$PortRule"
)

// policyRule is the part of a rule of a NetworkPolicy that Spinnaker shows.
type policyRule struct {
	Ports []struct {
		Protocol string          `json:"protocol"`
		Port     json.RawMessage `json:"port"` // number, text or null
	} `json:"ports"`
}

// networkPolicyRules returns the rules of a NetworkPolicy. Rules that allow all ports have none to
// show, and equal rules are shown once.
func networkPolicyRules(manifest []byte) (inbound, outbound []securityGroupRule, err error) {
	var policy struct {
		Spec struct {
			Ingress []policyRule `json:"ingress"`
			Egress  []policyRule `json:"egress"`
		} `json:"spec"`
	}
	if err := exactjson.Unmarshal(manifest, &policy, web.ObjectLimits); err != nil {
		return nil, nil, fmt.Errorf("read the rules of a NetworkPolicy: %w", err)
	}
	return portRules(policy.Spec.Ingress), portRules(policy.Spec.Egress), nil
}

func portRules(rules []policyRule) []securityGroupRule {
	shown := []securityGroupRule{}
	for _, rule := range rules {
		for _, port := range rule.Ports {
			shown = append(shown, securityGroupRule{Class: portRuleClass, Protocol: port.Protocol, PortRanges: portRangesOf(port.Port)})
		}
	}
	slices.SortStableFunc(shown, compareRules)
	return slices.CompactFunc(shown, func(x, y securityGroupRule) bool { return compareRules(x, y) == 0 })
}

func portRangesOf(port json.RawMessage) []portRange {
	var name string
	if err := json.Unmarshal(port, &name); err != nil {
		name = string(port) // a number
	}
	switch number, err := strconv.ParseInt(name, 10, 32); {
	case name == "" || name == "null":
		return nil
	case err != nil:
		return []portRange{{StartName: name, EndName: name}}
	default:
		n := int32(number)
		return []portRange{{Start: &n, End: &n}}
	}
}

func compareRules(x, y securityGroupRule) int {
	return cmp.Or(cmp.Compare(x.Protocol, y.Protocol), slices.CompareFunc(x.PortRanges, y.PortRanges, comparePortRanges))
}

func comparePortRanges(x, y portRange) int {
	return cmp.Or(cmp.Compare(number(x.Start), number(y.Start)), cmp.Compare(x.StartName, y.StartName))
}

// number returns -1 for nil, which is not a port.
func number(n *int32) int32 {
	if n == nil {
		return -1
	}
	return *n
}
