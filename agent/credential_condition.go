package agent

import (
	"errors"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/credentials"
	"github.com/vedette-io/vedette/agent/kube/version"
)

// noteCredentials records why the credentials in the files of the account are not in use, and when those in use end, so
// that users see it: the account works on with the old ones, until these end. A nil problem means that they are in use.
func (a *account) noteCredentials(problem error, end credentials.End) {
	now := time.Now()
	a.mu.Lock()
	a.credentials = nextCondition(a.credentials, credentialCondition(problem, a.issuer), now)
	a.validity = nextCondition(a.validity, validityCondition(end, now), now)
	conditions := a.conditionsLocked()
	a.mu.Unlock()
	a.agent.link.ReportConditions(a.cfg.Name, conditions)
}

// conditionsLocked returns the conditions of the account.
func (a *account) conditionsLocked() (all []vedette.Condition) {
	for _, c := range []vedette.Condition{a.credentials, a.validity, a.version} {
		if c.Type != "" {
			all = append(all, c)
		}
	}
	return all
}

// noteVersion says once that the agent was not tested with the version of the cluster, if that is so.
func (a *account) noteVersion(gitVersion string) {
	reason, message := version.Untested(gitVersion)
	a.mu.Lock()
	before := a.version
	isKnown := before.Message == message
	a.version = vedette.Condition{}
	if reason != "" {
		a.version = nextCondition(before, vedette.Condition{Type: vedette.VersionTested, Reason: reason, Message: message}, time.Now())
	}
	conditions := a.conditionsLocked()
	a.mu.Unlock()
	if isKnown {
		return
	}
	if reason != "" {
		a.log.Warn("the agent was not tested with this version of Kubernetes", "version", gitVersion, "reason", message)
	}
	a.agent.link.ReportConditions(a.cfg.Name, conditions)
}

// noteIssuer records who issues the credentials of the account, and logs it when it changes: which of an exec plugin and the agent gets
// a token depends on what is installed.
func (a *account) noteIssuer(issuer string) {
	a.mu.Lock()
	isNew := a.issuer != issuer
	a.issuer = issuer
	a.mu.Unlock()
	if isNew && issuer != "" {
		a.log.Info("credentials of the cluster are issued", "by", issuer)
	}
}

// forgetConditions is called when the account connects anew, or is removed.
func (a *account) forgetConditions() {
	a.mu.Lock()
	a.credentials, a.validity = vedette.Condition{}, vedette.Condition{}
	a.version = vedette.Condition{}
	a.mu.Unlock()
	a.agent.link.ReportConditions(a.cfg.Name, nil)
}

// credentialCondition returns the condition without a time. issuer may be empty.
func credentialCondition(err error, issuer string) vedette.Condition {
	if err == nil {
		return vedette.Condition{Type: vedette.CredentialsCurrent, Holds: true, Reason: "InUse", Message: issuer}
	}
	reason := "NotVerified" // the cluster did not answer, so nobody knows whether it accepts them
	switch {
	case vedette.KindOf(err) == vedette.Denied || kube.StatusCode(err) == 401 || kube.StatusCode(err) == 403:
		reason = "Rejected"
	case vedette.KindOf(err) == vedette.Invalid || vedette.KindOf(err) == "" && !isUnavailable(err):
		reason = "Invalid"
	}
	return vedette.Condition{Type: vedette.CredentialsCurrent, Reason: reason,
		Message: "the changed credentials cannot be used, so the old ones stay in use: " + err.Error()}
}

// validityCondition returns the condition without a time; the zero value if nothing says when the credentials end.
func validityCondition(end credentials.End, now time.Time) vedette.Condition {
	c := vedette.Condition{Type: vedette.CredentialsValid, Holds: true, Reason: "NotEnding"}
	at := end.End.UTC().Format(time.RFC3339)
	switch {
	case end.What == "":
		return vedette.Condition{}
	case !now.Before(end.End):
		c.Holds = false
		c.Reason = "Ended"
		c.Message = end.What + " of the account has ended at " + at + ": renew it in the files of the account"
	case end.IsNear(now):
		c.Holds = false
		c.Reason = "EndsSoon"
		c.Message = end.What + " of the account ends at " + at + ": renew it in the files of the account"
	}
	return c
}

func isUnavailable(err error) bool {
	var status *kube.StatusError
	return vedette.KindOf(err) == vedette.Unavailable || errors.As(err, &status)
}

// nextCondition returns a condition with the time of its last transition, as Kubernetes defines it: when it
// began or ceased to hold.
func nextCondition(before, now vedette.Condition, at time.Time) vedette.Condition {
	now.Since = at
	if before.Type == now.Type && before.Holds == now.Holds {
		now.Since = before.Since
	}
	return now
}

// credentialProblems reports whether the credentials in the files cannot be used, and whether those in use end soon or have
// ended.
func (a *account) credentialProblems() (areOld, areEnding bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.credentials.Type != "" && !a.credentials.Holds, a.validity.Type != "" && !a.validity.Holds
}
