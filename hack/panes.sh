#!/usr/bin/env bash
# Copyright The Opdock Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Writes the real output of opdock run into the documents, between "<!-- pane: NAME -->" and
# "<!-- end -->". Needs tmux and a built opdock: make build && hack/panes.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home=$(mktemp -d)
export OPDOCK_HOME=$home PATH=$PWD/bin:$PATH NO_COLOR=1
tmux=(tmux -L "opdock-panes-$$")
trap '"${tmux[@]}" kill-server 2>/dev/null || true; opdock down --all --delete >/dev/null 2>&1 || true; rm -rf "$home"' EXIT

# await TEXT waits until the terminal shows it.
await() {
	for _ in $(seq 300); do
		if "${tmux[@]}" capture-pane -p -t run | grep -q -- "$1"; then return; fi
		sleep 0.5
	done
	echo "the terminal never showed: $1" >&2
	"${tmux[@]}" capture-pane -p -t run >&2
	exit 1
}

# pane NAME FILE replaces a pane in a document with the content of the terminal. The page's port
# differs each time, so it is replaced with a fixed one.
pane() {
	"${tmux[@]}" capture-pane -p -t run | sed -e "s|$home|~/.local/state/opdock|" -e 's|http://127\.0\.0\.1:[0-9]\{5\}|http://127.0.0.1:40000|' -e 's/ *$//' >"$home/pane"
	awk -v name="$1" -v pane="$home/pane" '
		/^<!-- end -->$/ { skip = 0 }
		!skip { print }
		$0 == "<!-- pane: " name " -->" {
			skip = 1
			print "```text"
			while ((getline line < pane) > 0) { if (line != "") { printf "%s", blanks; blanks = ""; print line } else { blanks = blanks "\n" } }
			print "```"
		}' "$2" >"$home/document"
	cat "$home/document" >"$2"
}

"${tmux[@]}" new-session -d -s run -x 112 -y 34 "opdock run"
await "15 of 15 ready" # the samples, and what KAPPs make
pane samples README.md

"${tmux[@]}" resize-window -t run -x 100 -y 40
opdock kubectl apply -f - >/dev/null <<'MANIFEST'
apiVersion: app.example.com/v1
kind: AppService
metadata:
  name: broken
spec:
  size: 6
  image: nginx:1.29
  podMetadata:
    annotations:
      opdock.dev/behaviour: crash-loop
MANIFEST
await "Stalled CrashLoopBackOff"
await "more pods not ready"
pane broken docs/run.md
"${tmux[@]}" resize-window -t run -x 72 -y 20
sleep 1 # until it is redrawn
pane small docs/run.md
"${tmux[@]}" send-keys -t run q
