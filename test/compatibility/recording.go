package compatibility

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/vedette-io/vedette/internal/compare"
	"github.com/vedette-io/vedette/test/apistub"
)

// DefaultRecordings is where recordings are looked for, from the root of the repository.
const DefaultRecordings = "../shared/spinnaker/recordings"

// Recording is a recorded cluster, and what a Clouddriver answered about it.
type Recording struct {
	Cluster *apistub.Cluster
	Answers *compare.Recording
}

// FindRecordings returns the directory of recordings: the given one, the one that the environment
// variable SPINNAKER_RECORDINGS names, or the default.
func FindRecordings(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv("SPINNAKER_RECORDINGS")
	}
	if dir == "" {
		dir = DefaultRecordings
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("no recordings of Spinnaker in %s: name their directory with SPINNAKER_RECORDINGS", dir)
	}
	return dir, nil
}

// ReadRecording reads a recording: objects.json, the objects of a cluster as a list, and
// clouddriver.jsonl, answers of Clouddriver. The directory may be one level above.
func ReadRecording(dir string) (*Recording, error) {
	file := filepath.Join(dir, "objects.json")
	if _, err := os.Stat(file); err != nil {
		below, globErr := filepath.Glob(filepath.Join(dir, "*", "objects.json"))
		if globErr != nil || len(below) != 1 {
			return nil, fmt.Errorf("no recording in %s: want objects.json and clouddriver.jsonl, in it or in one directory in it", dir)
		}
		file = below[0]
	}
	cluster, err := ReadObjects(file)
	if err != nil {
		return nil, err
	}
	answers, err := ReadAnswers(filepath.Join(filepath.Dir(file), "clouddriver.jsonl"))
	return &Recording{Cluster: cluster, Answers: answers}, err
}

// ReadObjects returns a cluster with the objects of a file: a JSON list, or YAML documents.
func ReadObjects(file string) (*apistub.Cluster, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	objects, err := parseObjects(file, text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	cluster, err := apistub.New(objects)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return cluster, nil
}

func parseObjects(file string, text []byte) (objects []json.RawMessage, err error) {
	if filepath.Ext(file) == ".json" {
		return objects, json.Unmarshal(text, &objects)
	}
	for d := yaml.NewYAMLToJSONDecoder(bytes.NewReader(text)); ; {
		var object json.RawMessage
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object) > 0 && string(object) != "null" { // a document may have comments only
			objects = append(objects, object)
		}
	}
}

// ReadAnswers returns the answers of a file.
func ReadAnswers(file string) (*compare.Recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	answers, err := compare.ReadRecording(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return answers, nil
}
