#!/usr/bin/env bash
# Copyright The Opdock Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Puts what opdock dev really shows into docs/dev.md, between "<!-- pane: dev -->" and "<!-- end -->". Needs tmux, a built
# opdock and a built control plane: make build && test/dev/pane.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
export OPDOCK_HOME=$work/home NO_COLOR=1 OPDOCK_CONTROLPLANE=${OPDOCK_CONTROLPLANE:-$PWD/bin/opdock-controlplane}
opdock=${OPDOCK:-$PWD/bin/opdock}
tmux=(tmux -L "opdock-dev-pane-$$")
trap '"${tmux[@]}" kill-server 2>/dev/null || true; "$opdock" down --all --delete >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

mkdir -p "$work/bin"
ln -s "$opdock" "$work/bin/opdock"
cp -r test/dev/testdata/ship "$work/ship"
for file in go.mod go.sum; do
	sed 's|^module .*|module example.com/ship|' "$file" >"$work/ship/$file"
done

# await TEXT waits until the terminal shows it.
await() {
	for _ in $(seq 600); do
		if "${tmux[@]}" capture-pane -p -t dev | tr -d '\n' | grep -q -- "$1"; then return; fi
		sleep 0.5
	done
	echo "the terminal never showed: $1" >&2
	"${tmux[@]}" capture-pane -p -t dev >&2
	exit 1
}

"${tmux[@]}" new-session -d -s dev -x 124 -y 40 "cd $work/ship && PATH=$work/bin:$PATH opdock dev --quiet --samples"
await "1 sample applied"
sed -i 's/"ahoy, "/"hello, "/' "$work/ship/internal/controller/ships.go"
await "ships.go changed.*reconciling"
sed -i 's|^\t// Crew is|\t// Flag is flown.\n\tFlag string `json:"flag,omitempty"`\n\t// Crew is|' "$work/ship/api/v1/ship_types.go"
await "ship_types.go changed.*reconciling"
sed -i 's|^\t// Crew is|\t// +kubebuilder:default=many\n\t// Crew is|' "$work/ship/api/v1/ship_types.go"
await "rejected.*ship_types.go:"
sed -i '/kubebuilder:default=many/d' "$work/ship/api/v1/ship_types.go"
await "built the same binary"
sed -i 's/"hello, "/"hello, " + nothing/' "$work/ship/internal/controller/ships.go"
await "undefined: nothing"

"${tmux[@]}" capture-pane -p -t dev | sed -e "s|$work/home|~/.local/state/opdock|" -e 's|http://127\.0\.0\.1:[0-9]\{5\}|http://127.0.0.1:40000|' -e 's/ *$//' >"$work/pane"
awk -v pane="$work/pane" '
	/^<!-- end -->$/ { skip = 0 }
	!skip { print }
	$0 == "<!-- pane: dev -->" {
		skip = 1
		print "```text\n$ opdock dev --quiet --samples"
		while ((getline line < pane) > 0) { if (line != "") { printf "%s", blanks; blanks = ""; print line } else { blanks = blanks "\n" } }
		print "```"
	}' docs/dev.md >"$work/document"
cat "$work/document" >docs/dev.md
"${tmux[@]}" send-keys -t dev q
