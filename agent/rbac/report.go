package rbac

import (
	"context"

	"github.com/vedette-io/vedette"
)

// Report lists the RBAC rules that an account needs, and which of them its credentials lack.
type Report struct {
	account vedette.AccountName
	host    string
	user    string // empty if it is not known
	rules   []*rule
}

// NewReport asks the API server at host which of the needed rules are not granted.
func NewReport(ctx context.Context, c requester, host string, account vedette.AccountName, needs Needs) (*Report, error) {
	user, err := readUser(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &Report{account: account, host: host, user: user, rules: needs.rules()}
	return r, review(ctx, c, r.rules)
}

// Missing returns how many rules lack a verb, and how many rules there are.
func (r *Report) Missing() (missing, total int) {
	for _, rule := range r.rules {
		if len(rule.missing) > 0 {
			missing++
		}
	}
	return missing, len(r.rules)
}
