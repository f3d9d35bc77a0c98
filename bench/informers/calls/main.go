// Command calls is the usual way to work on a cluster from a program, to compare
// with: client-go's dynamic client, kept for all calls. It reads runs of calls
// from standard input, a JSON list on each line, and answers each run with a
// line that says how long it took.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// call is one request.
type call struct {
	Verb                     string // get, create, patch, delete
	Group, Version, Resource string
	Namespace, Name          string
	Subresource              string
	Type                     types.PatchType
	Body                     json.RawMessage
	MayMiss                  bool // a 404 is as good
}

// answer tells of a run of calls.
type answer struct {
	Nanoseconds int64
	Error       string
}

// The argument is a kubeconfig.
func main() {
	if err := run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "calls:", err)
		os.Exit(1)
	}
}

func run(kubeconfig string, in io.Reader, out io.Writer) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1 // nobody should wait for a limit of our own
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	lines, answers := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var calls []call
		if err := lines.Decode(&calls); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(timed(client, calls)); err != nil {
			return err
		}
	}
}

func timed(client dynamic.Interface, calls []call) answer {
	began := time.Now()
	for _, c := range calls {
		if err := c.do(client); err != nil && !(c.MayMiss && apierrors.IsNotFound(err)) {
			return answer{Error: fmt.Sprintf("%s %s %s/%s: %v", c.Verb, c.Resource, c.Namespace, c.Name, err)}
		}
	}
	return answer{Nanoseconds: time.Since(began).Nanoseconds()}
}

func (c call) do(client dynamic.Interface) error {
	ctx := context.Background()
	of := client.Resource(schema.GroupVersionResource{Group: c.Group, Version: c.Version, Resource: c.Resource}).Namespace(c.Namespace)
	var err error
	switch c.Verb {
	case "get":
		_, err = of.Get(ctx, c.Name, metav1.GetOptions{})
	case "create":
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(c.Body); err != nil {
			return err
		}
		_, err = of.Create(ctx, o, metav1.CreateOptions{FieldManager: "calls"})
	case "patch":
		_, err = of.Patch(ctx, c.Name, c.Type, c.Body, metav1.PatchOptions{FieldManager: "calls"}, c.subresources()...)
	case "delete":
		background := metav1.DeletePropagationBackground
		err = of.Delete(ctx, c.Name, metav1.DeleteOptions{PropagationPolicy: &background})
	default:
		err = fmt.Errorf("there is no call %q", c.Verb)
	}
	return err
}

func (c call) subresources() []string {
	if c.Subresource == "" {
		return nil
	}
	return []string{c.Subresource}
}
