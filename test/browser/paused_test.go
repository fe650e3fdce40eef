// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"
	"time"

	"github.com/opdock/opdock/internal/page/demo"
)

// Who has paused and then looks at something else gets to see that, and not an empty space beside it.
func TestAnotherObjectWhilePaused(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world, "scale shop", "scale cart", "scale shop")
	await(t, p, "opdock.view.passes.length === 12")
	for _, scale := range []string{"steps", "time"} {
		do(t, p, "opdock.controls.scale('"+scale+"'); opdock.timeline.follow(false); opdock.timeline.pan(100000)")
		for _, name := range []string{"cart", "shop"} {
			do(t, p, `opdock.choose(opdock.forest.byKey.get("AppService/app.example.com/default/`+name+`"))`)
			await(t, p, "opdock.timeline.rows.length === 1 && opdock.timeline.painter.drawn.passes > 0")
		}
		do(t, p, "opdock.choose(null)")
	}
}

// What happens during a pause does not move the view, and is there afterwards.
func TestNothingMovesWhilePaused(t *testing.T) {
	world := demo.New(30, time.Now())
	p := lookAt(t, world, "scale shop")
	await(t, p, "opdock.timeline.painter.drawn.passes === 4")
	do(t, p, "opdock.timeline.follow(false)")
	before := get[float64](t, p, "opdock.timeline.axis.x(opdock.view.passes[0].start)")
	tell(t, world, "fail cart")
	await(t, p, "opdock.list.rows.items.length === 7 && opdock.timeline.drawnVersion === opdock.view.version")
	if after := get[float64](t, p, "opdock.timeline.axis.x(opdock.view.passes[0].start)"); after != before {
		t.Errorf("it was at %v and is at %v", before, after)
	}
	do(t, p, "document.getElementById('follow').click()")
	await(t, p, "opdock.timeline.axis.x(opdock.view.passes.at(-1).end) <= opdock.timeline.width")
}
