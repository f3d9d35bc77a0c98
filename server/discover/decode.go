package discover

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// maxObjectBytes bounds one object as JSON, and maxDecodedBytes what it may become. API servers take objects of up to 3 MiB, and etcd
// keeps 1.5 MiB.
const (
	maxObjectBytes  = 8 << 20
	maxDecodedBytes = 32 << 20
)

// metadata is that of an object or a list.
type metadata struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	ResourceVersion string            `json:"resourceVersion"`
	Continue        string            `json:"continue"`
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
}

type objectReference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type endpointPort struct {
	Name     string `json:"name"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

// endpointSlice is the part of discovery.k8s.io/v1 EndpointSlice that is read.
type endpointSlice struct {
	Metadata  metadata        `json:"metadata"`
	Endpoints []sliceEndpoint `json:"endpoints"`
	Ports     []endpointPort  `json:"ports"`
}

type sliceEndpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready       *bool `json:"ready"`
		Serving     *bool `json:"serving"`
		Terminating *bool `json:"terminating"`
	} `json:"conditions"`
	TargetRef *objectReference `json:"targetRef"`
}

// endpoints is the part of v1 Endpoints that is read.
type endpoints struct {
	Metadata metadata         `json:"metadata"`
	Subsets  []endpointSubset `json:"subsets"`
}

type endpointSubset struct {
	Addresses         []endpointAddress `json:"addresses"`
	NotReadyAddresses []endpointAddress `json:"notReadyAddresses"`
	Ports             []endpointPort    `json:"ports"`
}

type endpointAddress struct {
	IP        string           `json:"ip"`
	TargetRef *objectReference `json:"targetRef"`
}

// selection says which Services and which of their ports are servers.
type selection struct {
	namespace, prefix, port string
}

// decoded is an object of any Service.
type decoded struct {
	metadata metadata
	service  string // empty if the object belongs to no Service
	object   object // without endpoints if the Service does not match
	remarks  []string
}

// resource is a kind of object that has the addresses of Services.
type resource struct {
	group, version, name, listKind string
	// serviceOf returns the name of the Service of an object.
	serviceOf func(metadata) string
	// read returns the endpoints of an object.
	read func(document []byte, r *reader) error
}

var (
	sliceResource = &resource{"discovery.k8s.io", "v1", "endpointslices", "EndpointSliceList",
		func(m metadata) string { return m.Labels["kubernetes.io/service-name"] }, readSlice}
	endpointsResource = &resource{"", "v1", "endpoints", "EndpointsList",
		func(m metadata) string { return m.Name }, readEndpoints}
)

// path returns the path of the list.
func (r *resource) path(namespace string) string {
	if r.group == "" {
		return "/api/" + r.version + "/namespaces/" + namespace + "/" + r.name
	}
	return "/apis/" + r.group + "/" + r.version + "/namespaces/" + namespace + "/" + r.name
}

// decode reads an object. Objects of other Services are not read beyond their metadata. An error is about this object only.
func (r *resource) decode(document []byte, s selection) (decoded, error) {
	var head struct {
		Metadata metadata `json:"metadata"`
	}
	if err := exactjson.Unmarshal(document, &head, exactjson.Limits{Bytes: maxDecodedBytes}); err != nil {
		return decoded{}, err
	}
	m := head.Metadata
	switch {
	case m.Name == "":
		return decoded{}, fmt.Errorf("it has no name")
	case m.Namespace != "" && m.Namespace != s.namespace:
		return decoded{}, fmt.Errorf("it is of namespace %.80q", m.Namespace)
	}
	d := decoded{metadata: m, service: r.serviceOf(m)}
	if d.service == "" || !strings.HasPrefix(d.service, s.prefix) {
		return d, nil
	}
	in := reader{selection: s, object: object{service: d.service}}
	if err := r.read(document, &in); err != nil {
		return decoded{}, err
	}
	if m.Annotations["endpoints.kubernetes.io/over-capacity"] == "truncated" {
		in.remark("it has only the first 1,000 addresses of its Service, because EndpointSlices have the others")
	}
	d.object, d.remarks = in.object, in.remarks
	return d, nil
}

// maxRemarks bounds what is said of one object.
const maxRemarks = 3

// reader collects the endpoints of an object.
type reader struct {
	selection
	object  object
	remarks []string
}

func (r *reader) remark(format string, args ...any) {
	if len(r.remarks) < maxRemarks {
		r.remarks = append(r.remarks, fmt.Sprintf(format, args...))
	}
}

func readSlice(document []byte, r *reader) error {
	var slice endpointSlice
	if err := exactjson.Unmarshal(document, &slice, exactjson.Limits{Bytes: maxDecodedBytes}); err != nil {
		return err
	}
	port := r.portOf(slice.Ports)
	if port == 0 {
		return nil
	}
	for _, e := range slice.Endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		c := e.Conditions // where ready is unknown, an endpoint counts as ready
		isReady := isNot(c.Ready, false) && isNot(c.Serving, false) && isNot(c.Terminating, true)
		r.add(e.Addresses[0], e.TargetRef, port, isReady) // the others are the same by Kubernetes' definition
	}
	return nil
}

// isNot reports whether a condition is missing or has the other value.
func isNot(condition *bool, value bool) bool { return condition == nil || *condition != value }

func readEndpoints(document []byte, r *reader) error {
	var e endpoints
	if err := exactjson.Unmarshal(document, &e, exactjson.Limits{Bytes: maxDecodedBytes}); err != nil {
		return err
	}
	for _, subset := range e.Subsets {
		port := r.portOf(subset.Ports)
		if port == 0 {
			continue
		}
		for _, a := range subset.Addresses {
			r.add(a.IP, a.TargetRef, port, true)
		}
		for _, a := range subset.NotReadyAddresses {
			r.add(a.IP, a.TargetRef, port, false)
		}
	}
	return nil
}

// portOf returns the port with the name that is looked for, or 0.
func (r *reader) portOf(ports []endpointPort) uint16 {
	for _, p := range ports {
		if p.Name != r.port || p.Protocol != "" && p.Protocol != "TCP" {
			continue
		}
		if p.Port > 0 && p.Port <= 65535 {
			return uint16(p.Port)
		}
		r.remark("its port %.40q is %d, which is not a port of TCP", p.Name, p.Port)
	}
	return 0
}

// add adds an address, unless it is not one of a server.
func (r *reader) add(text string, target *objectReference, port uint16, isReady bool) {
	address, err := netip.ParseAddr(text)
	if err != nil || !isUsable(address) {
		r.remark("its address %.80q is not an IP address of another machine", text)
		return
	}
	e := endpoint{vedette.ServerID(address.Unmap().String()), address.Unmap(), port, isReady}
	if target != nil && target.Name != "" && (target.Kind == "Pod" || target.Kind == "") &&
		(target.Namespace == "" || target.Namespace == r.namespace) {
		if !isPodName(target.Name) {
			r.remark("its address %s has a targetRef with the name %.80q, which no pod can have", address, target.Name)
			return
		}
		e.id = vedette.ServerID(target.Name)
	}
	r.object.endpoints = append(r.object.endpoints, e)
}

// isPodName reports whether a name has the characters and the length of a pod's.
func isPodName(name string) bool {
	return len(name) <= maxIDBytes &&
		!strings.ContainsFunc(name, func(c rune) bool { return c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') })
}

// status is a Status of the API server.
type status struct {
	Kind    string `json:"kind"`
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// watchEvent is a line of a watch.
type watchEvent struct {
	kind   string
	object []byte
}
