// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"encoding/json"
	"fmt"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// Strategy makes Kubernetes' strategy of ours; without one, the server's default applies.
func Strategy(of *sharedv1.DeploymentStrategy) (*appsv1ac.DeploymentStrategyApplyConfiguration, error) {
	if of == nil {
		return nil, nil //nolint:nilnil // the server's default
	}
	data, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("encoding the strategy: %w", err)
	}
	result := appsv1ac.DeploymentStrategy()
	if err := json.Unmarshal(data, result); err != nil {
		return nil, fmt.Errorf("decoding the strategy: %w", err)
	}
	return result, nil
}
