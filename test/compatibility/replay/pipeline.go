package replay

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// call is one recorded request of Orca.
type call struct {
	Method   string
	Path     string
	Status   int
	Request  string
	Response json.RawMessage // the body of an error, otherwise its length
}

// wasNotServed reports whether the recorded server, an earlier one of ours, did not have the endpoint.
func (c call) wasNotServed() bool { return bytes.Contains(c.Response, []byte("No handler found")) }

func readCalls(r io.Reader) (calls []call, err error) {
	err = readLines(r, func(line string) error {
		var c call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return err
		}
		calls = append(calls, c)
		return nil
	})
	return calls, err
}

// operation returns the name of a call's first operation, or "" if it has none. Recorders cut long
// requests.
func (c call) operation() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(c.Request, `[{"`), `"`)
	if c.Method != "POST" || !strings.HasPrefix(c.Request, `[{"`) {
		return ""
	}
	return name
}

// ends are how the tasks of each operation ended in Orca, in the order in which they were submitted.
type ends map[string][]bool

// operationOf maps tasks of Orca that wait for an operation to the operation.
var operationOf = map[string][]string{
	"monitorDeploy": {"deployManifest", "runJob"}, "monitorCleanup": {"cleanupArtifacts"}, "monitorScale": {"scaleManifest"},
	"monitorPatch": {"patchManifest"}, "monitorUndoRollout": {"undoRolloutManifest"}, "monitorRollingRestart": {"rollingRestartManifest"},
	"monitorPauseRollout": {"pauseRolloutManifest"}, "monitorResumeRollout": {"resumeRolloutManifest"}, "monitorDisable": {"disableManifest"},
	"monitorEnable": {"enableManifest"}, "monitorDelete": {"deleteManifest"},
}

// readEnds reads how pipelines ended: a line for each, with its stages and their tasks.
func readEnds(r io.Reader) (ends, error) {
	found := ends{}
	err := readLines(r, func(line string) error {
		var pipeline struct {
			Stages []struct {
				Type  string
				Tasks [][2]string
			}
		}
		if err := json.Unmarshal([]byte(line), &pipeline); err != nil {
			return err
		}
		for _, stage := range pipeline.Stages {
			for _, task := range stage.Tasks {
				found.add(stage.Type, task[0], task[1])
			}
		}
		return nil
	})
	return found, err
}

func (e ends) add(stage, task, status string) {
	operations := operationOf[task]
	if len(operations) == 0 || status == "NOT_STARTED" {
		return
	}
	operation := operations[0]
	if stage == "runJobManifest" {
		operation = "runJob"
	}
	e[operation] = append(e[operation], status == "SUCCEEDED")
}

// next returns how the next task of an operation ended, and whether that is known.
func (e ends) next(operation string) (succeeded, known bool) {
	list := e[operation]
	if len(list) == 0 {
		return false, false
	}
	e[operation] = list[1:]
	return list[0], true
}
