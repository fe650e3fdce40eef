// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tracecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/scratch"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/trace"
)

func (a verbs) trace(cmd *cobra.Command, o traceOptions, command []string) (err error) {
	ctx := cmd.Context()
	found, err := project.Find(".")
	var missing *project.NotFoundError
	if err != nil && !errors.As(err, &missing) {
		return err
	}
	if o.Name == "" {
		o.Name = a.DefaultName()
		if found != nil {
			o.Name = a.ClusterNameFor(found)
		}
	}
	t, err := a.Targets().Open(ctx, o.Which)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Leave()) }()
	librarylog.Discard()
	config, identity, err := a.identity(ctx, t, found, o.as)
	if err != nil {
		return err
	}
	dir, remove, err := scratch.Make("opdock-trace-")
	if err != nil {
		return fmt.Errorf("creating a directory for the kubeconfig: %w", err)
	}
	defer remove()
	traced := t.Title
	if t.Ours {
		traced = t.FileName
	}
	if err := cmdutil.NoteTraced(dir, traced); err != nil {
		return err
	}
	recording := o.save
	if recording == "" {
		recording = lens.RecordingPath(filepath.Join(a.DevStateDir(t.FileName), "recordings"), a.Now(), "")
	}
	view := &view{out: a.Err, options: &o, began: time.Now()}
	programOut := a.Out
	if o.format == cmdutil.OutputJSON {
		view.out, programOut = a.Out, a.Err
	}
	header := lens.Header{Command: command, Cluster: t.Title, Identity: identity, Traced: true}
	if found != nil {
		header.Project = found.Name
	}
	if o.save == "" {
		if err := lens.RemoveOldest(recording, header, lens.KeptRecordings); err != nil {
			return err
		}
	}
	result, err := trace.Run(ctx, trace.Options{
		Upstream: config, Near: t.Ours, Identity: identity, Namespace: o.Namespace, Command: command, Env: a.Env,
		Stdin: os.Stdin, Stdout: programOut, Stderr: a.Err, Dir: dir, Recording: recording, Header: header, See: view.see,
		Unused: func(refused uint64) { fmt.Fprintln(a.Err, unusedNote(refused)) },
	})
	if err != nil {
		return err
	}
	if o.format == cmdutil.OutputText {
		fmt.Fprintln(a.Err)
		if err := trace.Summary(a.Err, result.Totals); err != nil {
			return err
		}
		fmt.Fprintf(a.Err, "\nRecording: %s\n", recording)
	}
	if len(result.Totals.Uses) > 0 && result.Strangers > 0 { // otherwise, it is said already
		fmt.Fprintf(a.Err, "! Requests of the program without the credential in KUBECONFIG: %d. They were answered with 401, and are not in the recording.\n", result.Strangers)
	}
	if result.Incomplete != nil {
		fmt.Fprintf(a.Err, "! %v\n", result.Incomplete)
	}
	return exitError(result.ExitCode)
}

// unusedNote is what to do about a program that does not use its kubeconfig. Each run has another kubeconfig, so that the
// variable has to be passed, and not its value.
func unusedNote(refused uint64) string {
	if refused > 0 {
		return "! The program reached the proxy, but without the credential in KUBECONFIG, so its requests were refused. Use the whole file, not only its server."
	}
	return "! The program has sent no request through the proxy. If it ignores KUBECONFIG, pass it: opdock trace -- sh -c 'COMMAND --kubeconfig=$KUBECONFIG'"
}

// identity determines the identity of the program.
func (a verbs) identity(ctx context.Context, t *target.Target, found *project.Project, as string) (*rest.Config, string, error) {
	if as == "admin" {
		return t.Config, lens.Administrator, nil
	}
	namespace, name, asked := strings.Cut(as, ":")
	if !asked {
		if found == nil {
			fmt.Fprintln(a.Err, "There is no project in this directory, so the program runs as an administrator. Choose with --as.")
			return t.Config, lens.Administrator, nil
		}
		account, err := found.Identity(ctx)
		if err != nil {
			return nil, "", err
		}
		if account == nil {
			fmt.Fprintln(a.Err, "The project has no ServiceAccount for the operator, so the program runs as an administrator. Choose with --as.")
			return t.Config, lens.Administrator, nil
		}
		namespace, name = account.Namespace, account.ServiceAccount
	}
	exists, err := accountExists(ctx, t.Config, namespace, name)
	switch {
	case err != nil:
		return nil, "", err
	case !exists && asked:
		return nil, "", hint.With(fmt.Errorf("service account %s/%s does not exist on %s", namespace, name, t.Title), "create it, or choose another with --as")
	case !exists:
		fmt.Fprintf(a.Err, "Service account %s/%s does not exist on %s, so the program runs as an administrator.\n", namespace, name, t.Title)
		return t.Config, lens.Administrator, nil
	}
	kubeconfig, err := t.KubeconfigAs(ctx, namespace, name)
	if err != nil {
		return nil, "", err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig of service account %s/%s: %w", namespace, name, err)
	}
	return config, "system:serviceaccount:" + namespace + ":" + name, nil
}

func accountExists(ctx context.Context, config *rest.Config, namespace, name string) (bool, error) {
	server, err := client.New(config, client.Options{})
	if err != nil {
		return false, fmt.Errorf("connecting to the API server: %w", err)
	}
	err = server.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// view prints events.
type view struct {
	out     io.Writer
	options *traceOptions
	began   time.Time
	shown   atomic.Bool           // at least one line
	failed  atomic.Pointer[error] // the first, after which nothing is printed
}

func (v *view) see(e *lens.Event, lost uint64) {
	if v.options.quiet || v.failed.Load() != nil {
		return
	}
	if lost > 0 && v.options.format == cmdutil.OutputText {
		fmt.Fprintf(v.out, "%d events are not shown: the terminal was too slow. They are in the recording.\n", lost)
	}
	if !v.options.filter.Wants(e) || !details[v.options.show].Wants(e) {
		return
	}
	var err error
	if v.options.format == cmdutil.OutputJSON {
		err = json.NewEncoder(v.out).Encode(e)
	} else {
		_, err = fmt.Fprintln(v.out, trace.Line(e, v.began))
	}
	v.shown.Store(true)
	if err != nil { // the reader is gone, or the disk is full
		v.failed.Store(&err)
	}
}

// openRecording shows a recording.
func (a verbs) openRecording(o traceOptions) error {
	file, err := os.Open(o.open)
	if err != nil {
		return fmt.Errorf("opening the recording: %w", err)
	}
	defer file.Close()
	view := &view{out: a.Out, options: &o}
	found, err := lens.ReadRecording(file, func(e *lens.Event) error {
		if view.began.IsZero() {
			view.began = e.At
		}
		view.see(e, 0)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", o.open, err)
	}
	if failed := view.failed.Load(); failed != nil {
		return fmt.Errorf("printing the recording: %w", *failed)
	}
	if o.filter.IsSet() && !o.quiet && !view.shown.Load() {
		fmt.Fprintf(a.Err, "No line of the recording matches the filters. Reads and watch events need --show requests or --show all.\n")
	}
	if o.format == cmdutil.OutputJSON {
		return nil
	}
	a.describe(found)
	return trace.Summary(a.Out, found.Totals)
}

// describe prints what a recording contains, and what it lacks.
func (a verbs) describe(found *lens.Recorded) {
	header := found.Header
	fmt.Fprintf(a.Out, "\n%s on %s as %s, %s\n", cmp.Or(strings.Join(header.Command, " "), header.Project), cmp.Or(header.Cluster, "an unknown cluster"),
		cmp.Or(header.Identity, "an unknown identity"), header.Began.Local().Format(time.DateTime))
	if found.Missing > 0 {
		fmt.Fprintf(a.Out, "Not in the recording, because of its size limit or a full disk: %s.\n", trace.Count(found.Missing, "event"))
	}
	switch {
	case found.Cut:
		fmt.Fprintln(a.Out, "The end of the recording is missing.")
	case found.Missing > 0:
		fmt.Fprintln(a.Out, "The counts below include everything.")
	}
}
