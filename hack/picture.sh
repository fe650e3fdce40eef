#!/usr/bin/env bash
# Copyright The Opdock Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Takes the pictures of the page in docs/images: the effects of scaling an application of the fleet, and the traffic
# and rights of a made-up fleet. Needs Chromium and a built opdock: make build chromium && hack/picture.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

OPDOCK=${OPDOCK:-$PWD/bin/opdock}
home=$(mktemp -d)
export OPDOCK_HOME=$home
run=
trap '[ -z "$run" ] || { kill -INT "$run"; wait "$run" || true; }; rm -rf "$home"' EXIT

go -C test/browser build -o "$home/shot" ./shot
"$OPDOCK" run --samples store,nginx-app >"$home/run.log" 2>&1 &
run=$!
note=$home/clusters/dock/page.json
# await COMMAND waits until it succeeds.
await() {
	for _ in $(seq 600); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.2
	done
	cat "$home/run.log" >&2
	exit 1
}
await test -s "$note"
await grep -q "KAPP store: Ready" "$home/run.log"
await grep -q "AppService nginx-app: Ready" "$home/run.log"
"$OPDOCK" kubectl patch appservice nginx-app --type=merge -p '{"spec":{"size":3}}'
"$OPDOCK" kubectl wait appservice nginx-app --for=jsonpath='{.status.availableReplicas}'=3

address=$(sed 's/.*"address":"\([^"]*\)".*/\1/' "$note")
caused="opdock.store.passes.find((p) => p.causes.some((c) => c.raw.changes?.some((f) => f.path === 'spec.size')))"
choose="opdock.choose(opdock.forest.byKey.get('AppService/app.example.com/default/nginx-app'))"
"$home/shot" -url "$address" -out docs/images/page.png -await "globalThis.opdock && $caused" -do "$choose; opdock.open($caused)" -after 2s
for theme in light dark; do
	"$home/shot" -url "$address" -out docs/images/page-$theme.png -dark=$([ $theme = dark ] && echo true || echo false) \
		-await "globalThis.opdock && $caused" \
		-do "opdock.controls.scale('steps'); opdock.choose(opdock.forest.byKey.get('KAPP/kanggege.k8sio.com/default/store'))" -after 2s
done

# Traffic and rights are those of a made-up fleet, which is busy and lacks a right.
go build -o "$home/pagedemo" ./hack/pagedemo
"$home/pagedemo" -address 127.0.0.1:0 >"$home/demo.log" &
demo=$!
trap 'kill "$demo"; kill -INT "$run"; wait "$demo" "$run" || true; rm -rf "$home"' EXIT
await grep -q http "$home/demo.log"
for view in traffic rights; do
	"$home/shot" -url "$(cat "$home/demo.log")" -out docs/images/page-$view.png -await "globalThis.opdock && opdock.wire.all.length > 200" \
		-do "opdock.controls.view('$view')" -after 2s
done
