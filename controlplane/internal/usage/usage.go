// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage says how much CPU and memory simulated pods use: what an
// annotation says, or a default. docs/behaviours.md describes the annotation.
package usage

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Annotation on a pod says what it uses.
const Annotation = "opdock.dev/usage"

// Usage is the meaning of one value of the annotation.
type Usage struct {
	// Curves has what is used of each resource. A resource that is not in it is used by default.
	Curves map[corev1.ResourceName]Curve
	// Shared makes the amounts those of all pods of the same controller together.
	Shared bool
	// Repeat lets curves begin again after their last point.
	Repeat bool
}

// Curve is an amount over time: straight lines between points, and the last amount after the last point.
type Curve []Point

// Point is an amount at a time after the start of the pod.
type Point struct {
	At     time.Duration
	Amount Amount
}

// Amount is a quantity, or a part of what a container requests.
type Amount struct {
	Milli     int64   // thousandths of a core or of a byte, if it is a quantity
	Percent   float64 // of the request, if it is a part
	IsPercent bool
}

// Valid is what a message about a bad value offers.
const Valid = `cpu=AMOUNT and memory=AMOUNT, separated by a comma, where AMOUNT is a quantity (250m), a part of the request (80%), ` +
	`or a curve (100m 900m@1m 100m@5m); and the options shared and repeat`

// defaults are what a pod uses that says nothing: little.
var defaults = map[corev1.ResourceName]struct {
	part     Amount // for a container that requests some
	quantity Amount // for one that does not
}{
	corev1.ResourceCPU:    {Amount{Percent: 10, IsPercent: true}, Amount{Milli: 10}},
	corev1.ResourceMemory: {Amount{Percent: 50, IsPercent: true}, Amount{Milli: (32 << 20) * 1000}},
}

// Resources are those that are measured.
var Resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Parse reads a value of the annotation. The error of a bad value is a sentence for the pod's owner.
func Parse(value string) (Usage, error) {
	u := Usage{Curves: map[corev1.ResourceName]Curve{}}
	if strings.TrimSpace(value) == "" {
		return u, nil
	}
	seen := map[string]bool{}
	for item := range strings.SplitSeq(value, ",") {
		name, text, hasValue := strings.Cut(strings.TrimSpace(item), "=")
		if seen[name] {
			return Usage{}, fmt.Errorf("%s is given twice", name)
		}
		seen[name] = true
		switch {
		case !hasValue && name == "shared":
			u.Shared = true
		case !hasValue && name == "repeat":
			u.Repeat = true
		case hasValue && slices.Contains(Resources, corev1.ResourceName(name)):
			curve, err := parseCurve(text)
			if err != nil {
				return Usage{}, fmt.Errorf("%s: %w", name, err)
			}
			u.Curves[corev1.ResourceName(name)] = curve
		default:
			return Usage{}, fmt.Errorf("%q is neither cpu=, memory=, shared nor repeat", item)
		}
	}
	if u.Repeat && !slices.ContainsFunc(Resources, func(r corev1.ResourceName) bool { return len(u.Curves[r]) > 1 }) {
		return Usage{}, errors.New("repeat needs a curve of several points")
	}
	return u, nil
}

func parseCurve(text string) (Curve, error) {
	var curve Curve
	for field := range strings.FieldsSeq(text) {
		amountText, timeText, hasTime := strings.Cut(field, "@")
		amount, err := parseAmount(amountText)
		if err != nil {
			return nil, err
		}
		point := Point{Amount: amount}
		if hasTime {
			if point.At, err = time.ParseDuration(timeText); err != nil || point.At < 0 {
				return nil, fmt.Errorf("%q needs a time such as 30s or 2m after the @", field)
			}
		}
		if len(curve) > 0 {
			last := curve[len(curve)-1]
			if point.At <= last.At {
				return nil, fmt.Errorf("%q must come later than the point before it, at %v", field, last.At)
			}
			if amount.IsPercent != last.Amount.IsPercent {
				return nil, fmt.Errorf("%q: a curve has either quantities or percentages", field)
			}
		}
		curve = append(curve, point)
	}
	if len(curve) == 0 {
		return nil, errors.New("an amount is missing")
	}
	return curve, nil
}

func parseAmount(text string) (Amount, error) {
	if number, isPercent := strings.CutSuffix(text, "%"); isPercent {
		percent, err := strconv.ParseFloat(number, 64)
		if err != nil || !(percent >= 0 && percent <= 1e6) { // NaN is neither
			return Amount{}, fmt.Errorf("%q is not a percentage", text)
		}
		return Amount{Percent: percent, IsPercent: true}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return Amount{}, fmt.Errorf("%q is not an amount such as 250m, 64Mi or 80%%", text)
	}
	return Amount{Milli: quantity.MilliValue()}, nil
}

// at returns the amount at a time after the start.
func (c Curve) at(elapsed time.Duration, repeat bool) Amount {
	last := c[len(c)-1]
	if repeat && last.At > 0 {
		elapsed %= last.At
	}
	if elapsed <= c[0].At {
		return c[0].Amount
	}
	for i := 1; i < len(c); i++ {
		if elapsed < c[i].At {
			return between(c[i-1], c[i], elapsed)
		}
	}
	return last.Amount
}

func between(from, to Point, elapsed time.Duration) Amount {
	part := float64(elapsed-from.At) / float64(to.At-from.At)
	return Amount{
		IsPercent: from.Amount.IsPercent,
		Milli:     from.Amount.Milli + int64(part*float64(to.Amount.Milli-from.Amount.Milli)),
		Percent:   from.Amount.Percent + part*(to.Amount.Percent-from.Amount.Percent),
	}
}

// Group says how many pods share an amount, and when the oldest of them began.
type Group struct {
	Size  int
	Since time.Time
}

// Container is what one container uses.
type Container struct {
	Name  string
	Usage corev1.ResourceList
}

// OfPod returns what the containers of a pod use at a moment. The group belongs to its controller; it matters only
// for shared usage. A value that cannot be read counts as none: the simulated kubelet reports it in an event.
func OfPod(pod *corev1.Pod, group Group, now time.Time) []Container {
	u, err := Parse(pod.Annotations[Annotation])
	if err != nil {
		u = Usage{}
	}
	since := now
	if pod.Status.StartTime != nil {
		since = pod.Status.StartTime.Time
	}
	parts := len(pod.Spec.Containers)
	shares := 1
	if u.Shared {
		since, shares = group.Since, max(group.Size, 1)
	}
	containers := make([]Container, 0, parts)
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		used := corev1.ResourceList{}
		for _, name := range Resources {
			used[name] = quantity(name, amountOf(container, u, name, now.Sub(since), parts, shares))
		}
		containers = append(containers, Container{Name: container.Name, Usage: used})
	}
	return containers
}

// amountOf returns what a container uses, in thousandths.
func amountOf(container *corev1.Container, u Usage, name corev1.ResourceName, elapsed time.Duration, parts, shares int) int64 {
	requested, requests := container.Resources.Requests[name]
	curve, said := u.Curves[name]
	amount := defaults[name].quantity
	switch {
	case said:
		amount = curve.at(max(elapsed, 0), u.Repeat)
	case requests:
		amount = defaults[name].part
	}
	if amount.IsPercent {
		return int64(amount.Percent / 100 * float64(requested.MilliValue()) / float64(shares))
	}
	if !said {
		return amount.Milli
	}
	return amount.Milli / int64(parts) / int64(shares)
}

// quantity has the form in which metrics-server reports: nanocores would be too exact, and memory is in bytes.
func quantity(name corev1.ResourceName, milli int64) resource.Quantity {
	if name == corev1.ResourceMemory {
		return *resource.NewQuantity(milli/1000, resource.BinarySI)
	}
	return *resource.NewMilliQuantity(milli, resource.DecimalSI)
}
