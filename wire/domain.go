package wire

import "github.com/vedette-io/vedette"

// The conversions between messages and the types of package vedette that both sides use.

// FromKind encodes a kind.
func FromKind(k vedette.Kind) *Kind { return &Kind{Group: k.Group, Name: k.Name} }

// ToKind decodes a kind.
func ToKind(k *Kind) vedette.Kind { return vedette.Kind{Group: k.GetGroup(), Name: k.GetName()} }

// FromFeed encodes a feed.
func FromFeed(f vedette.Feed) *Feed {
	return &Feed{Kind: FromKind(f.Kind), Namespace: f.Namespace}
}

// ToFeed decodes a feed.
func ToFeed(f *Feed) vedette.Feed {
	return vedette.Feed{Kind: ToKind(f.GetKind()), Namespace: f.GetNamespace()}
}

// FromCluster encodes a cluster's identity.
func FromCluster(c vedette.Cluster) *Cluster {
	return &Cluster{Uid: c.UID, Host: c.Host, Fingerprint: c.Fingerprint, Version: c.Version}
}

// ToCluster decodes a cluster's identity.
func ToCluster(c *Cluster) vedette.Cluster {
	return vedette.Cluster{UID: c.GetUid(), Host: c.GetHost(), Fingerprint: c.GetFingerprint(), Version: c.GetVersion()}
}

// FromProjections encodes projections.
func FromProjections(projections []vedette.Projection) []*Projection {
	var out []*Projection
	for _, l := range projections {
		w := &Projection{Kind: FromKind(l.Kind)}
		for _, f := range l.Fields {
			w.Fields = append(w.Fields, &ProjectionField{Name: f.Name, Path: f.Path})
		}
		out = append(out, w)
	}
	return out
}

// ToProjections decodes projections.
func ToProjections(projections []*Projection) []vedette.Projection {
	var out []vedette.Projection
	for _, w := range projections {
		l := vedette.Projection{Kind: ToKind(w.GetKind())}
		for _, f := range w.GetFields() {
			l.Fields = append(l.Fields, vedette.ProjectionField{Name: f.GetName(), Path: f.GetPath()})
		}
		out = append(out, l)
	}
	return out
}

// FromMarks encodes the marks of an account.
func FromMarks(marks map[vedette.Feed]vedette.Mark) []*Mark {
	var out []*Mark
	for feed, mark := range marks {
		out = append(out, &Mark{Feed: FromFeed(feed), ResourceVersion: string(mark)})
	}
	return out
}

// ToMarks decodes the marks of an account.
func ToMarks(marks []*Mark) map[vedette.Feed]vedette.Mark {
	out := make(map[vedette.Feed]vedette.Mark, len(marks))
	for _, m := range marks {
		out[ToFeed(m.GetFeed())] = vedette.Mark(m.GetResourceVersion())
	}
	return out
}
