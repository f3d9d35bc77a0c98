package membership

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

func TestOnlySilentServersExpire(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type reading struct {
		at      time.Duration // by the local clock
		now     time.Duration // by the database's clock
		renewed time.Duration
		token   string
	}
	for _, tt := range []struct {
		name     string
		id       vedette.ServerID
		readings []reading
		want     bool // whether it is expired at the last reading
	}{
		{"first read, however old", "s2", []reading{{0, time.Hour, 0, "t"}}, false},
		{"first read twice at once, however old: the database's clock was set forward", "s2", []reading{{0, time.Hour, 0, "t"}, {time.Second, time.Hour, 0, "t"}}, false},
		{"not renewed, and old by the database's clock", "s2", []reading{{0, 2 * time.Second, 0, "t"}, {1500 * time.Millisecond, 3500 * time.Millisecond, 0, "t"}}, true},
		{"not renewed for two seconds", "s2", []reading{{0, 0, 0, "t"}, {2 * time.Second, 2 * time.Second, 0, "t"}}, false},
		{"not renewed for three seconds", "s2", []reading{{0, 0, 0, "t"}, {3 * time.Second, 3 * time.Second, 0, "t"}}, true},
		{"not renewed for three seconds, by a database whose clock was set back", "s2", []reading{{0, 0, 0, "t"}, {3 * time.Second, -time.Hour, 0, "t"}}, true},
		{"renewed while the reader was frozen", "s2", []reading{{0, 0, 0, "t"}, {time.Minute, time.Minute, 59 * time.Second, "t"}}, false},
		{"another process", "s2", []reading{{0, 0, 0, "t"}, {time.Minute, time.Minute, 0, "another"}}, false},
		{"this server, whose lease says whether it may continue", "s1", []reading{{0, 0, 0, "t"}, {time.Minute, time.Minute, 0, "t"}}, false},
		{"gone and back", "s2", []reading{{0, 0, 0, "t"}, {time.Second, time.Second, 0, ""}, {time.Minute, time.Minute, 0, "t"}}, false},
	} {
		o := newObserver("s1")
		var got []sqldb.SharingServer
		for _, r := range tt.readings {
			rows := []sqldb.SharingServer{{ID: tt.id, Token: r.token, Renewed: start.Add(r.renewed), Now: start.Add(r.now)}}
			if r.token == "" {
				rows = nil
			}
			got = o.observe(rows, start.Add(r.at))
		}
		if (len(got) == 1) != tt.want {
			t.Errorf("%s: got %v, want expired: %v", tt.name, got, tt.want)
		}
	}
}
