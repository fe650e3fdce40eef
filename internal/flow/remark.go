// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// Remark adds to the message of an object that becomes Ready. It is for states that match the
// spec but may be surprising. An empty remark adds nothing.
func (p *Pass) Remark(format string, args ...any) { p.remark = fmt.Sprintf(format, args...) }

func (p *Pass) addRemark(conditions *[]metav1.Condition) {
	ready := meta.FindStatusCondition(*conditions, sharedv1.ConditionReady)
	if p.remark != "" && ready != nil && ready.Status == metav1.ConditionTrue {
		ready.Message += "; " + p.remark
	}
}
