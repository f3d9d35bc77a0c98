package operationjson

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// LogRequest asks for the log of a pod. It is sent as query parameters, because its
// response is a stream: the tag query of vedette.LogsArgs names them.
type LogRequest struct {
	Account vedette.AccountName
	Args    vedette.LogsArgs
}

const accountParameter = "account"

// logField is a field of vedette.LogsArgs that has a query parameter.
type logField struct {
	index []int
	name  string // of the parameter
	// isDuration is true if the field is a number of seconds that the parameter gives as a
	// duration, for example 90s.
	isDuration bool
}

func logFields() []logField {
	var fields []logField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[vedette.LogsArgs]()) {
		if name, option, _ := strings.Cut(f.Tag.Get("query"), ","); name != "" {
			fields = append(fields, logField{f.Index, name, option == "duration"})
		}
	}
	return fields
}

// LogParameters returns the names of all query parameters of a log request.
func LogParameters() []string {
	names := []string{accountParameter}
	for _, f := range logFields() {
		names = append(names, f.name)
	}
	return names
}

// Values encodes a request as query parameters. Empty fields are left out.
func (r LogRequest) Values() url.Values {
	values := url.Values{accountParameter: {string(r.Account)}}
	args := reflect.ValueOf(r.Args)
	for _, f := range logFields() {
		if v := args.FieldByIndex(f.index); !v.IsZero() {
			values.Set(f.name, formatParameter(v, f.isDuration))
		}
	}
	return values
}

func formatParameter(v reflect.Value, duration bool) string {
	switch x := v.Interface().(type) {
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case *int64:
		if duration {
			return (time.Duration(*x) * time.Second).String()
		}
		return strconv.FormatInt(*x, 10)
	}
	panic("no parameter has the type " + v.Type().String()) // a test covers all fields
}

// ParseLogs decodes a request from query parameters and validates it. Unknown parameters
// are the caller's to reject: LogParameters names the known ones.
func ParseLogs(values url.Values) (LogRequest, error) {
	var r LogRequest
	account, err := single(values, accountParameter)
	if err != nil {
		return r, err
	}
	r.Account = vedette.AccountName(account)
	args := reflect.ValueOf(&r.Args).Elem()
	for _, f := range logFields() {
		text, err := single(values, f.name)
		if err != nil {
			return r, err
		}
		if text == "" {
			continue
		}
		if expected := parseParameter(args.FieldByIndex(f.index), text, f.isDuration); expected != "" {
			return r, vedette.Errorf(vedette.Invalid, "invalid %s %.40q: must be %s", f.name, text, expected)
		}
	}
	return r, r.validate()
}

func single(values url.Values, name string) (string, error) {
	if n := len(values[name]); n > 1 {
		return "", vedette.Errorf(vedette.Invalid, "the parameter %s is given %d times: give it once", name, n)
	}
	return values.Get(name), nil
}

// parseParameter sets a field. It returns what is expected if the text is invalid.
func parseParameter(v reflect.Value, text string, duration bool) (expected string) {
	switch x := v.Addr().Interface().(type) {
	case *string:
		*x = text
	case *bool:
		if text != "true" && text != "false" {
			return "true or false"
		}
		*x = text == "true"
	case *time.Time:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return "a time, for example 2026-01-31T12:00:00Z"
		}
		*x = t
	case **int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if duration {
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				return "a duration, for example 90s or 2h"
			}
			seconds := RoundUp(d)
			*x = &seconds
			return ""
		}
		if err != nil || n < 0 {
			return "a number of lines"
		}
		*x = &n
	default:
		panic("no parameter has the type " + v.Type().String()) // a test covers all fields
	}
	return ""
}

// RoundUp returns a duration in seconds. It rounds up, because showing too much of a log is
// better than too little.
func RoundUp(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func (r LogRequest) validate() error {
	switch {
	case r.Account == "":
		return vedette.Errorf(vedette.Invalid, "the parameter account is missing: logs are read from one account")
	case r.Args.Name == "":
		return vedette.Errorf(vedette.Invalid, "the parameter pod is missing: logs are read from one pod")
	case r.Args.Container != "" && r.Args.AllContainers:
		return vedette.Errorf(vedette.Invalid, "container and allContainers cannot be combined")
	case r.Args.SinceSeconds != nil && !r.Args.SinceTime.IsZero():
		return vedette.Errorf(vedette.Invalid, "since and sinceTime cannot be combined")
	}
	return nil
}
