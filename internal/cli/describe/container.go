package describe

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// container has the fields of a container that kubectl describes.
type container struct {
	Name, Image   string
	Command, Args []string
	Ports         []struct {
		Name, Protocol          string
		ContainerPort, HostPort int64
	}
	Resources                                   resources
	LivenessProbe, ReadinessProbe, StartupProbe *probe
	SecurityContext                             struct {
		SeccompProfile *struct{ Type, LocalhostProfile string }
	}
	EnvFrom []struct {
		Prefix                  string
		ConfigMapRef, SecretRef *keyReference
	}
	Env           []envVar
	VolumeMounts  []volumeMount
	VolumeDevices []struct{ Name, DevicePath string }
}

type volumeMount struct {
	Name, MountPath, SubPath string
	ReadOnly                 bool
}

type resources struct{ Limits, Requests map[string]string }

// keyReference names a ConfigMap or a Secret, or one key of it.
type keyReference struct {
	Name, Key string
	Optional  bool
}

type envVar struct {
	Name, Value string
	ValueFrom   *struct {
		FieldRef                      *struct{ APIVersion, FieldPath string }
		ResourceFieldRef              *struct{ Resource, Divisor string }
		SecretKeyRef, ConfigMapKeyRef *keyReference
	}
}

type probe struct {
	InitialDelaySeconds, TimeoutSeconds, PeriodSeconds, SuccessThreshold, FailureThreshold int64

	Exec    *struct{ Command []string }
	HTTPGet *struct {
		Host, Path, Scheme string
		Port               intstr.IntOrString
	}
	TCPSocket *struct {
		Host string
		Port intstr.IntOrString
	}
	GRPC *struct {
		Port    int64
		Service string
	}
}

// addContainers adds the containers of a pod template, or those of a pod with their statuses, which are further left.
func (d *descriptionLines) addContainers(title string, all []container, ofPod bool, statuses []containerStatus) {
	if len(all) == 0 {
		title += ": <none>"
	} else {
		title += ":"
	}
	level, indent := 1, " "
	if ofPod {
		level, indent = 0, ""
	}
	d.addf(level, "%s", title)
	for _, c := range all {
		d.addf(1, "%s%s:", indent, c.Name)
		d.addContainer(c, statusOf(statuses, c.Name))
	}
}

// addContainer adds a container, with its status unless that is nil.
func (d *descriptionLines) addContainer(c container, status *containerStatus) {
	if status != nil {
		d.addf(2, "Container ID:\t%s", status.ContainerID)
	}
	d.addf(2, "Image:\t%s", c.Image)
	if status != nil {
		d.addf(2, "Image ID:\t%s", status.ImageID)
	}
	d.addPorts(c)
	if p := c.SecurityContext.SeccompProfile; p != nil {
		d.addf(2, "SeccompProfile:\t%s", p.Type)
		if p.Type == "Localhost" {
			d.addf(3, "LocalhostProfile:\t%s", p.LocalhostProfile)
		}
	}
	d.addList("Command", c.Command)
	d.addList("Args", c.Args)
	if status != nil {
		d.addStatus(*status)
	}
	d.addQuantities("Limits", c.Resources.Limits)
	d.addQuantities("Requests", c.Resources.Requests)
	for _, p := range []struct {
		title string
		*probe
	}{{"Liveness", c.LivenessProbe}, {"Readiness", c.ReadinessProbe}, {"Startup", c.StartupProbe}} {
		if p.probe != nil {
			d.addf(2, "%s:\t%s", p.title, p.probe)
		}
	}
	d.addEnvironment(c)
	d.addMounts(c)
}

func (d *descriptionLines) addPorts(c container) {
	var inner, host []string
	for _, p := range c.Ports {
		name := ""
		if p.Name != "" {
			name = " (" + p.Name + ")"
		}
		inner = append(inner, fmt.Sprintf("%d/%s%s", p.ContainerPort, p.Protocol, name))
		host = append(host, fmt.Sprintf("%d/%s%s", p.HostPort, p.Protocol, name))
	}
	plural := ""
	if len(c.Ports) > 1 {
		plural = "s"
	}
	d.addf(2, "Port%s:\t%s", plural, cmp.Or(strings.Join(inner, ", "), "<none>"))
	d.addf(2, "Host Port%s:\t%s", plural, cmp.Or(strings.Join(host, ", "), "<none>"))
}

func (d *descriptionLines) addList(title string, words []string) {
	if len(words) == 0 {
		return
	}
	d.addf(2, "%s:", title)
	for _, word := range words {
		for line := range strings.SplitSeq(word, "\n") {
			d.addf(3, "%s", line)
		}
	}
}

func (d *descriptionLines) addQuantities(title string, quantities map[string]string) {
	if len(quantities) == 0 {
		return
	}
	d.addf(2, "%s:", title)
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		d.addf(3, "%s:\t%s", name, quantities[name])
	}
}

// String returns a probe on one line, as kubectl prints it.
func (p *probe) String() string {
	attributes := fmt.Sprintf("delay=%ds timeout=%ds period=%ds #success=%d #failure=%d",
		p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds, p.SuccessThreshold, p.FailureThreshold)
	switch {
	case p.Exec != nil:
		return fmt.Sprintf("exec %v %s", p.Exec.Command, attributes)
	case p.HTTPGet != nil:
		address := url.URL{Scheme: strings.ToLower(p.HTTPGet.Scheme), Host: net.JoinHostPort(p.HTTPGet.Host, p.HTTPGet.Port.String()),
			Path: p.HTTPGet.Path}
		return fmt.Sprintf("http-get %s %s", address.String(), attributes)
	case p.TCPSocket != nil:
		return fmt.Sprintf("tcp-socket %s:%s %s", p.TCPSocket.Host, p.TCPSocket.Port.String(), attributes)
	case p.GRPC != nil:
		return fmt.Sprintf("grpc <pod>:%d %s %s", p.GRPC.Port, p.GRPC.Service, attributes)
	}
	return "unknown " + attributes
}

func (d *descriptionLines) addEnvironment(c container) {
	if len(c.EnvFrom) > 0 {
		d.addf(2, "Environment Variables from:")
	}
	for _, from := range c.EnvFrom {
		kind, ref := "ConfigMap", from.ConfigMapRef
		if ref == nil {
			kind, ref = "Secret", from.SecretRef
		}
		if ref == nil {
			continue
		}
		if from.Prefix != "" {
			kind += " with prefix '" + from.Prefix + "'"
		}
		d.addf(3, "%s\t%s\tOptional: %t", ref.Name, kind, ref.Optional)
	}
	if len(c.Env) == 0 {
		d.addf(2, "Environment:\t<none>")
		return
	}
	d.addf(2, "Environment:")
	for _, v := range c.Env {
		d.addEnvVar(v, c.Resources)
	}
}

func (d *descriptionLines) addEnvVar(v envVar, r resources) {
	if v.ValueFrom == nil {
		for i, line := range strings.Split(v.Value, "\n") {
			if i == 0 {
				line = v.Name + ":\t" + line
			} else {
				line = "\t" + line
			}
			d.addf(3, "%s", line)
		}
		return
	}
	switch from := v.ValueFrom; {
	case from.FieldRef != nil:
		d.addf(3, "%s:\t (%s:%s)", v.Name, from.FieldRef.APIVersion, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		d.addf(3, "%s:\t%s (%s)", v.Name, r.value(from.ResourceFieldRef.Resource, from.ResourceFieldRef.Divisor), from.ResourceFieldRef.Resource)
	case from.SecretKeyRef != nil:
		d.addf(3, "%s:\t<set to the key '%s' in secret '%s'>\tOptional: %t", v.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Name,
			from.SecretKeyRef.Optional)
	case from.ConfigMapKeyRef != nil:
		d.addf(3, "%s:\t<set to the key '%s' of config map '%s'>\tOptional: %t", v.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name,
			from.ConfigMapKeyRef.Optional)
	}
}

// value returns the value of an environment variable that refers to a resource such as
// "limits.cpu", in units of the divisor, rounded up.
func (r resources) value(what, divisor string) string {
	which, name, _ := strings.Cut(what, ".")
	quantities := map[string]map[string]string{"limits": r.Limits, "requests": r.Requests}[which]
	quantity, err := resource.ParseQuantity(cmp.Or(quantities[name], "0"))
	if err != nil {
		return ""
	}
	unit, err := resource.ParseQuantity(cmp.Or(divisor, "1"))
	if err != nil || unit.IsZero() {
		unit = resource.MustParse("1")
	}
	if quantity.IsZero() && (what == "limits.cpu" || what == "limits.memory") {
		return "node allocatable"
	}
	return fmt.Sprint(int64(math.Ceil(quantity.AsApproximateFloat64() / unit.AsApproximateFloat64())))
}

func (d *descriptionLines) addMounts(c container) {
	if len(c.VolumeMounts) == 0 {
		d.addf(2, "Mounts:\t<none>")
	} else {
		d.addf(2, "Mounts:")
	}
	mounts := slices.Clone(c.VolumeMounts)
	slices.SortStableFunc(mounts, func(a, b volumeMount) int { return cmp.Compare(a.MountPath, b.MountPath) })
	for _, m := range mounts {
		mode := map[bool]string{true: "ro", false: "rw"}[m.ReadOnly]
		if m.SubPath != "" {
			mode += fmt.Sprintf(",path=%q", m.SubPath)
		}
		d.addf(3, "%s from %s (%s)", m.MountPath, m.Name, mode)
	}
	if len(c.VolumeDevices) > 0 {
		d.addf(2, "Devices:")
	}
	for _, device := range c.VolumeDevices {
		d.addf(3, "%s from %s", device.DevicePath, device.Name)
	}
}
