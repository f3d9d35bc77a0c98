package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

func newRecordWriter(t *testing.T) *recordWriter {
	t.Helper()
	redactor, err := redact.New(redact.Config{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	box := outbox.New(1 << 20)
	box.Recall("a", 1)
	box.Open("a", 1, nil)
	return &recordWriter{account: "a", box: box, redactor: redactor, indexes: &indexes{}, announcements: &feedAnnouncements{box: box, account: "a"},
		metrics:         metrics.New("test"),
		setClusterError: func(error) {}, setWaitReason: func(string) {}, setSelectionError: func(error) {}, log: slog.New(slog.DiscardHandler), snapshots: map[vedette.Feed]*index{}}
}

// TestUnreadableObjectDoesNotStopWatcher checks that no object makes the recordWriter fail, which
// would end all feeds of the account. An unreadable object is left out, or the feed is
// listed again.
func TestUnreadableObjectDoesNotStopWatcher(t *testing.T) {
	deep := strings.Repeat(`[`, 600) + strings.Repeat(`]`, 600)
	const head = `{"kind":"ConfigMap","apiVersion":"v1",`
	pods := watch.FeedSpec{Feed: vedette.Feed{Kind: vedette.Kind{Name: "ConfigMap"}},
		Resource: vedette.Resource{Kind: vedette.Kind{Name: "ConfigMap"}, Version: "v1", Plural: "configmaps"}}
	for name, object := range map[string]string{
		"deep managedFields":         `"metadata":{"managedFields":` + deep + `,"namespace":"n","name":"x","resourceVersion":"7"}}`,
		"deep data":                  `"data":` + deep + `,"metadata":{"namespace":"n","name":"x","resourceVersion":"7"}}`,
		"no name":                    `"metadata":{"resourceVersion":"7"}}`,
		"metadata that is a number":  `"metadata":7}`,
		"no JSON inside":             `"metadata":{"name":"x","resourceVersion":"7","labels":{a:b}}}`,
		"a name that is not UTF-8":   `"metadata":{"namespace":"n` + "\xff" + `","name":"x` + "\xff" + `","resourceVersion":"7"}}`,
		"labels that are not UTF-8":  `"metadata":{"namespace":"n","name":"x","resourceVersion":"7","labels":{"` + "\xff" + `":"` + "\xfe" + `"}}}`,
		"a name of control bytes":    `"metadata":{"namespace":"n","name":"\u0000bookmark","resourceVersion":"7"}}`,
		"half of a surrogate":        `"metadata":{"namespace":"n","name":"\ud800","resourceVersion":"7"}}`,
		"a version that is not text": `"metadata":{"namespace":"n","name":"x","resourceVersion":7}}`,
	} {
		for _, typ := range []watch.EventType{watch.Upsert, watch.Delete, watch.Item} {
			t.Run(fmt.Sprintf("%s, %s", name, typ), func(t *testing.T) {
				s := newRecordWriter(t)
				s.snapshots[pods.Feed] = &index{}
				err := s.Put(t.Context(), watch.Event{Type: typ, FeedSpec: pods, Raw: []byte(head + object), Mark: "7"})
				if err != nil && (typ != watch.Delete || !errors.Is(err, watch.ErrUnreadable)) {
					t.Errorf("got error %v, want none", err)
				}
				if strings.HasPrefix(name, "deep") && err != nil {
					t.Errorf("readable name: got error %v, want none", err)
				}
			})
		}
	}
}
