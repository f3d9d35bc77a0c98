package sqldb

import "testing"

func TestMigrationLockExpiresByRounds(t *testing.T) {
	held := func(renewals int64) lockHolder { return lockHolder{token: "other", renewals: renewals} }
	type round struct {
		holder lockHolder
		wrote  bool
	}
	repeat := func(r round, n int) (rounds []round) {
		for range n {
			rounds = append(rounds, r)
		}
		return rounds
	}
	for _, tt := range []struct {
		name   string
		rounds []round
		want   bool // whether the lock may be taken in the last round
	}{
		{"a free lock", []round{{lockHolder{}, true}}, true},
		{"a lock that was just seen", []round{{held(1), true}}, false},
		{"its holder has died", repeat(round{held(1), true}, migrationLockExpiry+1), true},
		{"one round too early", repeat(round{held(1), true}, migrationLockExpiry), false},
		{"no write of the waiting server succeeded, as while the schema changes", repeat(round{held(1), false}, 10*migrationLockExpiry), false},
		{"it was renewed in between", append(repeat(round{held(1), true}, migrationLockExpiry), round{held(2), true}), false},
		{"another server has taken it", append(repeat(round{held(1), true}, migrationLockExpiry), round{lockHolder{"third", 2}, true}), false},
		{"it is released", append(repeat(round{held(1), true}, 3), round{lockHolder{"", 1}, true}), true},
	} {
		var watch lockWatch
		got := false
		for _, r := range tt.rounds {
			got = watch.observe(r.holder, r.wrote)
		}
		if got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
