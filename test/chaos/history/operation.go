// Package history checks what clients have seen of servers that share a database: whether their operations are linearizable,
// whether each had one effect in the cluster, and whether streams of changes were in order and complete. It does no I/O except
// for pictures of failures.
package history

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Verb is what an operation does to its object.
type Verb string

// The verbs. An object has one value, or it does not exist.
const (
	Read   Verb = "read"
	Write  Verb = "write"
	Delete Verb = "delete"
)

// Outcome is what a client has been told about an operation.
type Outcome string

// The outcomes. An operation of unknown outcome may take effect at any time after it was sent, or never.
const (
	Done    Outcome = "done"
	Failed  Outcome = "failed" // without effect
	Unknown Outcome = "unknown"
)

// Absent is the value of an object that does not exist.
const Absent = ""

// Operation is one operation of a client. Values that are written are unique.
type Operation struct {
	Client  int
	ID      string // of the operation or its task; empty if it has none
	Object  string // with its account
	Verb    Verb
	Value   string // written or read
	Outcome Outcome
	Call    time.Duration // since the history began
	Return  time.Duration // the same; without meaning if the outcome is unknown
	Latest  time.Duration // when a write of unknown outcome has no effect any more; 0 if that is not known
	IsLate  bool          // a server has said that the effect can be read later than the operation is answered
	Detail  string        // who was asked and what was answered, for people
}

func (o Operation) String() string {
	value := o.Value
	if value == Absent {
		value = "nothing"
	}
	if o.Verb == Delete {
		value = ""
	}
	return strings.TrimSpace(fmt.Sprintf("%9.3fs to %9.3fs client %d: %s %s %s: %s %s %s", o.Call.Seconds(), o.Return.Seconds(), o.Client, o.Verb, o.Object,
		value, o.Outcome, o.ID, o.Detail))
}

// registerModel is an object: a register whose initial value is Absent. Each object is checked apart.
var registerModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byObject := map[string][]porcupine.Operation{}
		for _, o := range all {
			object := o.Input.(Operation).Object
			byObject[object] = append(byObject[object], o)
		}
		var parts [][]porcupine.Operation
		for _, object := range slices.Sorted(maps.Keys(byObject)) {
			parts = append(parts, byObject[object])
		}
		return parts
	},
	Init: func() any { return Absent },
	Step: func(state, input, _ any) (bool, any) {
		switch o := input.(Operation); o.Verb {
		case Write:
			return true, o.Value
		case Delete:
			return true, Absent
		default:
			return state == o.Value, state
		}
	},
	DescribeOperation: func(input, _ any) string { return input.(Operation).String() },
	DescribeState:     func(state any) string { return fmt.Sprintf("%q", state) },
}

// decisive returns the operations that decide whether a history is linearizable. Failed ones had no effect. A write of unknown outcome that
// nobody has read can always have happened last; without these, the checker's time does not explode.
func decisive(all []Operation) (ops []porcupine.Operation) {
	read := map[[2]string]bool{}
	for _, o := range all {
		if o.Verb == Read && o.Outcome == Done {
			read[[2]string{o.Object, o.Value}] = true
		}
	}
	for _, o := range all {
		end := int64(o.Return)
		switch {
		case o.Outcome == Failed, o.Outcome == Unknown && o.Verb == Read:
			continue
		case o.Outcome == Unknown && o.Verb == Write && !read[[2]string{o.Object, o.Value}],
			o.Outcome == Unknown && o.Verb == Delete && !read[[2]string{o.Object, Absent}]:
			continue
		case o.Outcome == Unknown, o.IsLate && o.Verb != Read:
			end = math.MaxInt64
		}
		ops = append(ops, porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Call), Return: end})
	}
	return ops
}

// BeforeRestores returns the operations up to when the cluster of their account was restored, if it was. From then on, readers
// may see what the restore has undone until the agent has noticed it, so that nothing that they see decides anything. What was
// under way may have any effect.
func BeforeRestores(all []Operation, restores map[string]time.Duration) (kept []Operation) {
	for _, o := range all {
		account, _, _ := strings.Cut(o.Object, "/")
		at, isRestored := restores[account]
		switch {
		case !isRestored:
		case o.Call >= at, o.Verb == Read && o.Return >= at:
			continue
		case o.Outcome == Unknown || o.Return >= at:
			o.Outcome = Unknown
		}
		kept = append(kept, o)
	}
	return kept
}

// settled leaves out reads that have seen the effect of an operation before it was answered. Until then the servers may show it
// or not: each is told at another time, and all know it when it is answered.
func settled(all []Operation) (kept []Operation) {
	type span struct{ from, to time.Duration }
	writes := map[[2]string][]span{} // by object and value; several of deletions
	for _, o := range all {
		if o.Verb == Read || o.Outcome == Failed {
			continue
		}
		value, end := o.Value, o.Return
		if o.Verb == Delete {
			value = Absent
		}
		if o.Outcome == Unknown || o.IsLate {
			end = math.MaxInt64
		}
		key := [2]string{o.Object, value}
		writes[key] = append(writes[key], span{o.Call, end})
	}
	for _, o := range all {
		isUnderWay := o.Verb == Read && slices.ContainsFunc(writes[[2]string{o.Object, o.Value}], func(w span) bool { return w.from <= o.Return && w.to >= o.Call })
		if !isUnderWay {
			kept = append(kept, o)
		}
	}
	return kept
}

// Linearizability is the result of a check.
type Linearizability struct {
	Violations   []string // of each object that is not linearizable, with its operations
	Early        []string // objects that are linearizable only without the reads that saw effects before these were answered
	Inconclusive []string // objects for which the time did not suffice
	Checked      int      // operations
	picture      func(io.Writer) error
}

// CheckLinearizable checks each object on its own, and takes at most the given time for each. Reads of effects that are not
// answered yet do not make a violation, but an object is named in Early then.
func CheckLinearizable(all []Operation, timeout time.Duration) (result Linearizability) {
	ops := decisive(all)
	result.Checked = len(ops)
	kept := settled(all)
	for _, part := range registerModel.Partition(ops) {
		object := part[0].Input.(Operation).Object
		if porcupine.CheckOperationsTimeout(registerModel, part, timeout) == porcupine.Ok {
			continue
		}
		part = ofObject(decisive(kept), object)
		switch porcupine.CheckOperationsTimeout(registerModel, part, timeout) {
		case porcupine.Ok:
			result.Early = append(result.Early, object)
		case porcupine.Unknown:
			result.Inconclusive = append(result.Inconclusive, object)
		case porcupine.Illegal:
			result.Violations = append(result.Violations, object+" is not linearizable:\n"+describe(part))
			if result.picture == nil {
				result.picture = func(w io.Writer) error {
					_, info := porcupine.CheckOperationsVerbose(registerModel, part, timeout)
					return porcupine.Visualize(registerModel, info, w)
				}
			}
		}
	}
	return result
}

func ofObject(ops []porcupine.Operation, object string) []porcupine.Operation {
	return slices.DeleteFunc(ops, func(o porcupine.Operation) bool { return o.Input.(Operation).Object != object })
}

// Picture writes a page of HTML that shows the first violation. It must not be called without one.
func (r Linearizability) Picture(w io.Writer) error { return r.picture(w) }

// describe lists operations around the first reads that cannot be explained: the longest prefix that is linearizable ends there.
func describe(part []porcupine.Operation) string {
	byReturn := slices.Clone(part)
	slices.SortStableFunc(byReturn, func(a, b porcupine.Operation) int { return int(min(max(a.Return-b.Return, -1), 1)) })
	// The history up to each return is a history too: what has not returned by then may have any effect.
	first := len(byReturn) - 1
	low, high := 0, len(byReturn)-1
	for low <= high {
		middle := (low + high) / 2
		if porcupine.CheckOperationsTimeout(registerModel, prefix(part, byReturn[middle].Return), time.Second) == porcupine.Illegal {
			first, high = middle, middle-1
		} else {
			low = middle + 1
		}
	}
	end := byReturn[first].Return
	var lines []string
	for _, o := range slices.Backward(byReturn[:first+1]) {
		lines = append(lines, "  "+o.Input.(Operation).String())
		if len(lines) == shownOperations {
			break
		}
	}
	slices.Reverse(lines)
	for _, o := range part {
		if o.Call < end && o.Return > end {
			lines = append(lines, "  under way: "+o.Input.(Operation).String())
		}
	}
	return strings.Join(lines, "\n")
}

// shownOperations is how many operations before a violation are listed.
const shownOperations = 25

// prefix returns a history up to a time: reads that have not returned are left out, and writes may end at any later time.
func prefix(part []porcupine.Operation, until int64) (ops []porcupine.Operation) {
	for _, o := range part {
		switch {
		case o.Return <= until:
			ops = append(ops, o)
		case o.Call <= until && o.Input.(Operation).Verb != Read:
			o.Return = math.MaxInt64
			ops = append(ops, o)
		}
	}
	return ops
}
