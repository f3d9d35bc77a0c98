package configfile

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Inactive is a key that is set to something other than its default, and has no effect in this version.
type Inactive struct {
	Key    string   // entries of lists share one: "kubernetes.accounts[].cacheThreads"
	At     Position // where it is set first
	Reason string   // why it has no effect, and what has it instead
	// IsReliedOn is set if the key is marked with warn, because users may rely on its effect.
	IsReliedOn bool
}

// String returns "agent.yml:7:3: hub: The predecessor's cloud service no longer exists."
func (i Inactive) String() string { return fmt.Sprintf("%s: %s: %s", i.At, printable(i.Key), i.Reason) }

// Reasons are why keys have no effect. That of a group is the reason of all keys in it.
type Reasons map[string]string

// unusedReason is the reason of keys that have none.
const unusedReason = "This program does not use it."

// of returns the key that has the reason of a path, and the reason.
func (r Reasons) of(path string) (key, reason string) {
	path = withoutIndexes(path)
	for key = path; key != ""; {
		if reason, ok := r[key]; ok {
			return key, reason
		}
		end := strings.LastIndexByte(key, '.')
		if end < 0 {
			break
		}
		key = strings.TrimSuffix(key[:end], "[]")
	}
	return path, unusedReason
}

var listIndex = regexp.MustCompile(`\[\d+\]`)

// withoutIndexes returns a path that all entries of a list share.
func withoutIndexes(path string) string { return listIndex.ReplaceAllString(path, "[]") }

// InactiveSettings lists the keys that are set to something other than their default and have no effect
// in this version. Keys with one reason, and entries of lists, are one, because a file with 100 accounts
// must not make 100 entries.
func InactiveSettings(config any, r *Report, reasons Reasons) []Inactive {
	e := &settingLister{report: r, reasons: reasons}
	e.listConfig(config)
	return e.inactive
}

func (e *settingLister) addInactive(p location) {
	key, reason := e.reasons.of(p.path)
	at := slices.IndexFunc(e.inactive, func(i Inactive) bool { return i.Key == key })
	if at < 0 {
		e.inactive = append(e.inactive, Inactive{Key: key, Reason: reason, At: e.report.PositionOf(p.path)})
		at = len(e.inactive) - 1
	}
	e.inactive[at].IsReliedOn = e.inactive[at].IsReliedOn || p.warn
}

// changedSettings lists the keys that are set to something other than their default and that have an
// effect, with their values masked like those of Effective.
func changedSettings(config any, r *Report) []KeyValue {
	e := &settingLister{report: r}
	e.listConfig(config)
	return slices.DeleteFunc(e.all, func(kv KeyValue) bool { return !e.changed[kv.Key] })
}

func (e *settingLister) listConfig(config any) {
	e.listStruct(location{}, reflect.Indirect(reflect.ValueOf(config)))
}

// Switch is a setting without which others have no effect.
type Switch struct {
	Keys    string // the beginning of the keys that depend on it, for example "prometheus."
	IsOff   bool
	Because string // for example "prometheus.enabled is not true"
	Except  string // the beginning of keys that do not depend on it; may be empty
}

// WithoutEffect returns a notice for each switch that is off while settings that depend on it are set to
// something other than their defaults.
func WithoutEffect(config any, r *Report, switches []Switch) (notices []string) {
	changed := changedSettings(config, r)
	for _, s := range switches {
		var keys []string
		first := Position{}
		for _, kv := range changed {
			if !s.IsOff || !strings.HasPrefix(kv.Key, s.Keys) || s.Except != "" && strings.HasPrefix(kv.Key, s.Except) {
				continue
			}
			if len(keys) == 0 {
				first = r.PositionOf(kv.Key)
			}
			keys = append(keys, printable(kv.Key))
		}
		if len(keys) > 0 {
			notices = append(notices, fmt.Sprintf("%s: %s %s no effect, because %s", first, shorten(keys), verb(len(keys)), s.Because))
		}
	}
	return notices
}

func verb(count int) string {
	if count == 1 {
		return "has"
	}
	return "have"
}
