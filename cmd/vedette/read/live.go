package read

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/objectformat"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/tables"
)

// liveObject is an object that was read from a cluster, because no agent caches its kind.
// Agents never cache Events, because there are too many, so their fields are shown.
type liveObject struct {
	account, kind string
	raw           json.RawMessage
	objectHeader
	eventFields
}

type objectHeader struct {
	APIVersion, Kind string
	Metadata         struct {
		Namespace, Name   string
		UID               string
		ResourceVersion   string
		CreationTimestamp time.Time
	}
}

// eventFields are the fields of Events of both API groups. Other kinds may have fields with these names, and of other types.
type eventFields struct {
	Type, Reason, Message, Note              string
	FirstTimestamp, LastTimestamp, EventTime time.Time
	DeprecatedFirstTimestamp                 time.Time // of Events that clients of core/v1 wrote
	DeprecatedLastTimestamp                  time.Time
	Count, DeprecatedCount                   int
	Series                                   struct {
		Count            int
		LastObservedTime time.Time
	}
	InvolvedObject, Regarding struct{ Kind, Name, FieldPath string }
	Source                    struct{ Component string }

	ReportingComponent, ReportingController string
}

// decodeLive decodes objects that a cluster returned. It reports false, and counts a failure, if one is invalid. What is for messages:
// "list pods".
func decodeLive(run *fanout.Run, what string, raws []json.RawMessage) (objects []liveObject, ok bool) {
	for _, raw := range raws {
		o := liveObject{account: run.Account, raw: raw}
		err := json.Unmarshal(raw, &o.objectHeader)
		if o.kind = schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind().String(); isEventKind(o.kind) {
			err = errors.Join(err, json.Unmarshal(raw, &o.eventFields))
		}
		if err != nil {
			run.Failf("%s: the cluster returned an invalid object: %v", what, err)
			return nil, false
		}
		objects = append(objects, o)
	}
	return objects, true
}

// manifest returns an object as the server would.
func (o liveObject) manifest() client.Object {
	return client.Object{Account: o.account, Kind: o.kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Manifest: o.raw}
}

// printLive prints objects after as many other tables.
func (g *getter) printLive(all []liveObject, before int) error {
	if err := g.sortLive(all); err != nil {
		return err
	}
	if g.format.Name() == objectformat.Name {
		for _, o := range all {
			g.out.Line(output.ObjectPath(o.account, o.kind, o.Metadata.Namespace, o.Metadata.Name))
		}
		return g.out.Flush()
	}
	byKind := map[string][]liveObject{}
	for _, o := range all {
		byKind[o.kind] = append(byKind[o.kind], o)
	}
	for i, kind := range slices.Sorted(maps.Keys(byKind)) {
		if before+i > 0 {
			g.out.Line("")
		}
		g.out.Table(g.liveTable(kind, byKind[kind], time.Now()))
	}
	return g.out.Flush()
}

// sortLive sorts objects by --sort-by. Events are in the order of time, because those of several clusters tell one story.
func (g *getter) sortLive(all []liveObject) error {
	if g.sorter == nil {
		if !slices.ContainsFunc(all, func(o liveObject) bool { return !isEventKind(o.kind) }) {
			slices.SortStableFunc(all, func(a, b liveObject) int { return a.lastSeen().Compare(b.lastSeen()) })
		}
		return nil
	}
	return sortObjects(g.sorter, all, func(o liveObject) (map[string]any, error) {
		object, err := manifests.Decode(o.raw)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", output.ObjectPath(o.account, o.kind, o.Metadata.Namespace, o.Metadata.Name), err)
		}
		objectformat.ConvertNumbers(object)
		return object, nil
	})
}

// eventHeader are the columns of Events.
var eventHeader = []string{"ACCOUNT", "NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}

func (g *getter) liveTable(kind string, objects []liveObject, now time.Time) *output.Table {
	isEvent, header := isEventKind(kind), eventHeader
	if !isEvent {
		header = []string{"ACCOUNT", "NAMESPACE", "NAME", "AGE"}
	}
	table := g.newTextTable(header...)
	for _, o := range objects {
		table.Add(o.cells(isEvent, now))
	}
	return table
}

// cells returns the cells of an object, or kubectl's columns for an Event of either API group.
func (o liveObject) cells(isEvent bool, now time.Time) []string {
	if isEvent {
		return []string{o.account, o.Metadata.Namespace, age(o.lastSeen(), now), o.Type, o.Reason, o.object(), o.text()}
	}
	return []string{o.account, o.Metadata.Namespace, o.Metadata.Name, age(o.Metadata.CreationTimestamp, now)}
}

// lastSeen returns when an Event of either API group happened last.
func (o liveObject) lastSeen() time.Time {
	for _, t := range []time.Time{o.Series.LastObservedTime, o.LastTimestamp, o.DeprecatedLastTimestamp, o.EventTime} {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// object returns what an Event is about: "pod/web-0".
func (o liveObject) object() string {
	object := o.InvolvedObject
	if object.Name == "" {
		object = o.Regarding
	}
	return strings.ToLower(object.Kind) + "/" + object.Name
}

// text returns the message of an Event, in one line.
func (o liveObject) text() string { return strings.TrimSpace(cmp.Or(o.Message, o.Note)) }

func age(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return tables.Age(now.Sub(t))
}
