// Command calls sends requests to a cluster with one client of client-go's dynamic
// package. The benchmarks compare the agent with it, because this is the usual way to
// change a cluster from a program. It reads batches of calls from standard input, one
// JSON list per line, and prints the duration of each batch on one line.
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
	MayMiss                  bool // a 404 is not an error
}

// answer is the result of a batch of calls.
type answer struct {
	Nanoseconds int64
	Error       string // of the first call that failed; empty if none did
}

// main takes the path of a kubeconfig.
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
	cfg.QPS = -1 // no limit, because client-side throttling must not slow the benchmark
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
		err = fmt.Errorf("the verb must be get, create, patch or delete, got %q", c.Verb)
	}
	return err
}

func (c call) subresources() []string {
	if c.Subresource == "" {
		return nil
	}
	return []string{c.Subresource}
}
