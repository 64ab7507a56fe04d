#!/bin/bash
# keys.sh VLP FILE [-w]: the block "```keys" of FILE is what `vlp pretrain --help-keys` prints; -w
# writes it there.
set -euo pipefail
vlp=$1 file=$2
keys=$(mktemp)
trap 'rm -f "$keys" "$keys.new"' EXIT
"$vlp" pretrain --help-keys >"$keys"
awk -v keys="$keys" '
    /^```keys$/ { print; while ((getline line < keys) > 0) print line; inside = 1; next }
    /^```/ { inside = 0 }
    !inside' "$file" >"$keys.new"
if [[ ${3:-} == -w ]]; then
    cat "$keys.new" >"$file"
elif ! diff "$file" "$keys.new"; then
    echo "$file: its keys are out of date; run $0 $vlp $file -w" >&2
    exit 1
fi
grep -q '^```keys$' "$file" || { echo "$file has no block of keys" >&2; exit 1; }
