// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold makes operator projects and adds kinds and webhooks to them, in the layout of kubebuilder v4. The
// projects import nothing of Opdock.
//
// Nothing is written while a plan is made. A Plan is the difference between a project on disk and what it should be, and
// is written as a whole:
//
//	plan, err := scaffold.CreateAPI(scaffold.APIOptions{Dir: ".", Group: "ship", Version: "v1", Kind: "Frigate"})
//	...
//	err = plan.Write(ctx, func(ctx context.Context) error {
//		_, err := generate.Run(ctx, generate.Options{Dir: plan.Dir})
//		return err
//	})
//
// What is generated from Go types is left to package generate, which has to run as a part of writing a plan.
package scaffold
