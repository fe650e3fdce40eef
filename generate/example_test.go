// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/opdock/opdock/generate"
)

// A check for CI: it changes nothing and tells what is stale.
func ExampleRun() {
	result, err := generate.Run(context.Background(), generate.Options{Dir: ".", Check: true})
	var source *generate.Error
	if errors.As(err, &source) {
		for _, problem := range source.Problems {
			fmt.Println(problem) // file:line:column: what is wrong
		}
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range result.Changes {
		fmt.Println(change.Kind, change.Path)
	}
}
