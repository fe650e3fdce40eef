// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold creates operator projects and adds kinds and webhooks to them, in the layout of kubebuilder v4.
// The projects import nothing from Opdock.
//
// Creating a plan writes nothing. A Plan is the difference between a project on disk and its desired state, and is
// written atomically:
//
//	plan, err := scaffold.CreateAPI(scaffold.APIOptions{Dir: ".", Group: "ship", Version: "v1", Kind: "Frigate"})
//	...
//	err = plan.Write(ctx, func(ctx context.Context) error {
//		_, err := generate.Run(ctx, generate.Options{Dir: plan.Dir})
//		return err
//	})
//
// Package generate generates code and manifests from Go types. It must run as a part of writing a plan.
package scaffold
