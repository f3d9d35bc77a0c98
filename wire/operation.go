package wire

import (
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
)

// FromOperation encodes an operation. Its deadline becomes the time that is left
// of it, since the two clocks need not agree. An operation of which a name is not
// valid UTF-8 is vedette.Invalid: repaired, it would name another object.
func FromOperation(op vedette.Operation, now time.Time) (*Operation, error) {
	o, err := encodeOperation(op, now)
	if err != nil {
		return nil, err
	}
	if name, valid := findInvalidUTF8(o.ProtoReflect()); !valid {
		return nil, vedette.Errorf(vedette.Invalid, "%q is not valid UTF-8, so that no cluster can know it by that name", name)
	}
	return o, nil
}

func encodeOperation(op vedette.Operation, now time.Time) (*Operation, error) {
	o := &Operation{Id: string(op.ID), Account: string(op.Account)}
	if !op.Deadline.IsZero() {
		o.TimeoutMillis = max(1, op.Deadline.Sub(now).Milliseconds())
	}
	if !op.DryRun {
		return o, o.setArgs(op.Args)
	}
	inner := &Operation{}
	o.Verb = &Operation_DryRun{&DryRun{Operation: inner}}
	return o, inner.setArgs(op.Args)
}

func (o *Operation) setArgs(args vedette.Args) error {
	switch a := args.(type) {
	case vedette.GetArgs:
		o.Verb = &Operation_Get{FromTarget(a.Target)}
	case vedette.ListArgs:
		o.Verb = &Operation_List{&List{Target: FromTarget(a.Target), LabelSelector: a.LabelSelector, FieldSelector: a.FieldSelector}}
	case vedette.ApplyArgs:
		o.Verb = &Operation_Apply{&Apply{Manifest: a.Manifest, Namespace: a.Namespace, Strategy: string(a.Strategy), Compare: a.Compare, Fields: string(a.Fields)}}
	case vedette.PatchArgs:
		o.Verb = &Operation_Patch{&Patch{Target: FromTarget(a.Target), Type: string(a.Type), Patch: a.Patch}}
	case vedette.DeleteArgs:
		o.setDelete(a)
	case vedette.PruneArgs:
		o.Verb = &Operation_Prune{&Prune{Kinds: a.Kinds, Namespaces: a.Namespaces, LabelSelector: a.LabelSelector, All: a.All, Keep: a.Keep,
			Propagation: a.Propagation, GraceSeconds: a.GraceSeconds}}
	case vedette.ScaleArgs:
		o.Verb = &Operation_Scale{&Scale{Target: FromTarget(a.Target), Replicas: a.Replicas}}
	case vedette.RestartArgs:
		o.Verb = &Operation_Restart{FromTarget(a.Target)}
	case vedette.PauseArgs:
		o.Verb = &Operation_Pause{FromTarget(a.Target)}
	case vedette.ResumeArgs:
		o.Verb = &Operation_Resume{FromTarget(a.Target)}
	case vedette.UndoArgs:
		o.Verb = &Operation_Undo{&Undo{Target: FromTarget(a.Target), Revision: a.Revision, RevisionsBack: int64(a.RevisionsBack)}}
	case vedette.HistoryArgs:
		o.Verb = &Operation_History{FromTarget(a.Target)}
	case vedette.StatusArgs:
		o.Verb = &Operation_Status{FromTarget(a.Target)}
	case vedette.LogsArgs:
		o.Verb = &Operation_Logs{fromLogs(a)}
	case vedette.EventsArgs:
		o.Verb = &Operation_Events{FromTarget(a.Target)}
	case vedette.MetricsArgs:
		o.Verb = &Operation_Metrics{&Metrics{Namespace: a.Namespace, Name: a.Name, LabelSelector: a.LabelSelector}}
	case vedette.DiscoverArgs:
		o.Verb = &Operation_Discover{&Discover{}}
	case vedette.RecacheArgs:
		o.Verb = &Operation_Recache{FromTarget(a.Target)}
	case vedette.VersionArgs:
		o.Verb = &Operation_Version{&Version{Manifest: a.Manifest, Namespace: a.Namespace}}
	default:
		return fmt.Errorf("encode an operation: there is no word for %T", args)
	}
	return nil
}

// ToOperation decodes an operation. Its Args are nil where this program is too old
// to know them.
func ToOperation(o *Operation, now time.Time) vedette.Operation {
	op := vedette.Operation{ID: vedette.OperationID(o.GetId()), Account: vedette.AccountName(o.GetAccount()), Args: argsOf(o)}
	if o.GetDryRun() != nil {
		op.DryRun, op.Args = true, argsOf(o.GetDryRun().GetOperation())
	}
	if o.GetTimeoutMillis() > 0 {
		op.Deadline = now.Add(time.Duration(o.GetTimeoutMillis()) * time.Millisecond)
	}
	return op
}

func argsOf(o *Operation) vedette.Args {
	switch v := o.GetVerb().(type) {
	case *Operation_Get:
		return vedette.GetArgs{Target: ToTarget(v.Get)}
	case *Operation_List:
		return vedette.ListArgs{Target: ToTarget(v.List.GetTarget()), LabelSelector: v.List.GetLabelSelector(), FieldSelector: v.List.GetFieldSelector()}
	case *Operation_Apply:
		return vedette.ApplyArgs{Manifest: v.Apply.GetManifest(), Namespace: v.Apply.GetNamespace(), Strategy: vedette.Strategy(v.Apply.GetStrategy()),
			Compare: v.Apply.GetCompare(), Fields: vedette.FieldValidation(v.Apply.GetFields())}
	case *Operation_Patch:
		return vedette.PatchArgs{Target: ToTarget(v.Patch.GetTarget()), Type: vedette.PatchType(v.Patch.GetType()), Patch: v.Patch.GetPatch()}
	case *Operation_Delete:
		return toDelete(v.Delete)
	case *Operation_DeleteChosen:
		return toDelete(v.DeleteChosen)
	case *Operation_Prune:
		p := v.Prune
		return vedette.PruneArgs{Kinds: p.GetKinds(), Namespaces: p.GetNamespaces(), LabelSelector: p.GetLabelSelector(), All: p.GetAll(), Keep: p.GetKeep(),
			Propagation: p.GetPropagation(), GraceSeconds: p.GraceSeconds}
	case *Operation_Scale:
		return vedette.ScaleArgs{Target: ToTarget(v.Scale.GetTarget()), Replicas: v.Scale.GetReplicas()}
	case *Operation_Restart:
		return vedette.RestartArgs{Target: ToTarget(v.Restart)}
	case *Operation_Pause:
		return vedette.PauseArgs{Target: ToTarget(v.Pause)}
	case *Operation_Resume:
		return vedette.ResumeArgs{Target: ToTarget(v.Resume)}
	case *Operation_Undo:
		return vedette.UndoArgs{Target: ToTarget(v.Undo.GetTarget()), Revision: v.Undo.GetRevision(), RevisionsBack: int(v.Undo.GetRevisionsBack())}
	case *Operation_History:
		return vedette.HistoryArgs{Target: ToTarget(v.History)}
	case *Operation_Status:
		return vedette.StatusArgs{Target: ToTarget(v.Status)}
	case *Operation_Logs:
		return toLogs(v.Logs)
	case *Operation_Events:
		return vedette.EventsArgs{Target: ToTarget(v.Events)}
	case *Operation_Metrics:
		return vedette.MetricsArgs{Namespace: v.Metrics.GetNamespace(), Name: v.Metrics.GetName(), LabelSelector: v.Metrics.GetLabelSelector()}
	case *Operation_Discover:
		return vedette.DiscoverArgs{}
	case *Operation_Recache:
		return vedette.RecacheArgs{Target: ToTarget(v.Recache)}
	case *Operation_Version:
		return vedette.VersionArgs{Manifest: v.Version.GetManifest(), Namespace: v.Version.GetNamespace()}
	}
	return nil
}

// setDelete encodes a deletion: under a word that older agents don't have where they
// would take it for one of other objects.
func (o *Operation) setDelete(a vedette.DeleteArgs) {
	d := &DeleteObjects{Target: FromTarget(a.Target), LabelSelector: a.LabelSelector, Propagation: a.Propagation, GraceSeconds: a.GraceSeconds,
		MissingOk: a.MissingOK, NoWait: a.NoWait, KnownUid: a.KnownUID, FieldSelector: a.FieldSelector, All: a.All, AllNamespaces: a.AllNamespaces,
		OnlyKnown: a.OnlyKnown}
	if a.FieldSelector != "" || a.All || a.AllNamespaces {
		o.Verb = &Operation_DeleteChosen{d}
		return
	}
	o.Verb = &Operation_Delete{d}
}

func toDelete(d *DeleteObjects) vedette.DeleteArgs {
	return vedette.DeleteArgs{Target: ToTarget(d.GetTarget()), LabelSelector: d.GetLabelSelector(), Propagation: d.GetPropagation(),
		GraceSeconds: d.GraceSeconds, MissingOK: d.GetMissingOk(), NoWait: d.GetNoWait(), FieldSelector: d.GetFieldSelector(), All: d.GetAll(),
		AllNamespaces: d.GetAllNamespaces(), KnownUID: d.GetKnownUid(), OnlyKnown: d.GetOnlyKnown()}
}

// FromTarget encodes a target.
func FromTarget(t vedette.Target) *Target {
	return &Target{Kind: t.Kind, ApiVersion: t.APIVersion, Namespace: t.Namespace, Name: t.Name}
}

// ToTarget decodes a target.
func ToTarget(t *Target) vedette.Target {
	return vedette.Target{Kind: t.GetKind(), APIVersion: t.GetApiVersion(), Namespace: t.GetNamespace(), Name: t.GetName()}
}

func fromLogs(a vedette.LogsArgs) *Logs {
	l := &Logs{Target: FromTarget(a.Target), Container: a.Container, AllContainers: a.AllContainers, Previous: a.Previous,
		Follow: a.Follow, TailLines: a.TailLines, SinceSeconds: a.SinceSeconds, Timestamps: a.Timestamps}
	if !a.SinceTime.IsZero() {
		l.SinceUnixNanos = a.SinceTime.UnixNano()
	}
	return l
}

func toLogs(l *Logs) vedette.LogsArgs {
	a := vedette.LogsArgs{Target: ToTarget(l.GetTarget()), Container: l.GetContainer(), AllContainers: l.GetAllContainers(), Previous: l.GetPrevious(),
		Follow: l.GetFollow(), TailLines: l.TailLines, SinceSeconds: l.SinceSeconds, Timestamps: l.GetTimestamps()}
	if l.GetSinceUnixNanos() != 0 {
		a.SinceTime = time.Unix(0, l.GetSinceUnixNanos()).UTC()
	}
	return a
}
