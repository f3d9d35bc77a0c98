package tables

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

type jobSummary struct {
	podTemplate
	conditions
	Completions *int
	Parallelism int
	Succeeded   int
	Started     string
	Completed   string
	Deleted     string
}

func job() kindTable {
	return kindTable{
		resource: resource("batch", "v1", "Job", "jobs", true),
		fields: append(append(templateFields("spec.template"), conditionFields()...), fields(
			"completions", "spec.completions", "parallelism", "spec.parallelism", "succeeded", "status.succeeded",
			"failed", "status.failed", "active", "status.active", "started", "status.startTime", "completed", "status.completionTime",
			"deleted", "metadata.deletionTimestamp", "selector", "spec.selector")...),
		table: newTable(columns("STATUS", "COMPLETIONS", "DURATION", "AGE", "CONTAINERS*", "IMAGES*", "SELECTOR*"),
			func(s *jobSummary, o *vedette.Object, now time.Time) []string {
				return append([]string{s.phase(), s.completionText(), s.duration(now), ageSince(o.Created, now)}, s.wideCells()...)
			}),
	}
}

func (s *jobSummary) phase() string {
	switch {
	case s.isTrue("Complete"):
		return "Complete"
	case s.isTrue("Failed"):
		return "Failed"
	case s.Deleted != "":
		return "Terminating"
	case s.isTrue("Suspended"):
		return "Suspended"
	case s.isTrue("FailureTarget"):
		return "FailureTarget"
	case s.isTrue("SuccessCriteriaMet"):
		return "SuccessCriteriaMet"
	default:
		return "Running"
	}
}

func (s *jobSummary) completionText() string {
	switch {
	case s.Completions != nil:
		return fmt.Sprintf("%d/%d", s.Succeeded, *s.Completions)
	case s.Parallelism > 1:
		return fmt.Sprintf("%d/1 of %d", s.Succeeded, s.Parallelism)
	default:
		return fmt.Sprintf("%d/1", s.Succeeded)
	}
}

func (s *jobSummary) duration(now time.Time) string {
	started, err := time.Parse(time.RFC3339, s.Started)
	if err != nil {
		return ""
	}
	if completed, err := time.Parse(time.RFC3339, s.Completed); err == nil {
		now = completed
	}
	return Age(now.Sub(started))
}

func cronJob() kindTable {
	type summary struct {
		podTemplate
		Schedule  string
		TimeZone  string
		Suspend   *bool
		Active    int
		Scheduled string
	}
	return kindTable{
		resource: resource("batch", "v1", "CronJob", "cronjobs", true, "cj"),
		fields: append(templateFields("spec.jobTemplate.spec.template"), fields("schedule", "spec.schedule", "timeZone", "spec.timeZone",
			"suspend", "spec.suspend", "active", "status.active.#", "scheduled", "status.lastScheduleTime",
			"selector", "spec.jobTemplate.spec.selector")...),
		table: newTable(columns("SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "AGE", "CONTAINERS*", "IMAGES*", "SELECTOR*"),
			func(s *summary, o *vedette.Object, now time.Time) []string {
				suspended, last := "<unset>", none
				if s.Suspend != nil {
					suspended = map[bool]string{true: "True", false: "False"}[*s.Suspend]
				}
				if s.Scheduled != "" {
					last = ageSinceTimestamp(s.Scheduled, now)
				}
				return append([]string{s.Schedule, cmp.Or(s.TimeZone, none), suspended, strconv.Itoa(s.Active), last,
					ageSince(o.Created, now)}, s.wideCells()...)
			}),
	}
}
