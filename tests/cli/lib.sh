# Sourced by the scripts: "$1" is the fixture's folder, copied for this script alone and indexed. A
# failed check says what it was and ends the script with 1.
set -u
fixture=$1
name=$(basename "$0" .sh)
work=$fixture.$name
rm -rf "$work"
cp -r "$fixture" "$work" && rm "$work"/pairs.db*
cd "$work" || exit 1
"$VLP" index pairs.db pictures.jsonl --quiet --check || exit 1

fail() {
    echo "$name: $*" >&2
    sed 's/^/  out: /' out >&2
    sed 's/^/  err: /' err >&2
    exit 1
}

# run CODE ARGUMENTS...: vlp must end with CODE; its output lies in out and err.
run() {
    want=$1
    shift
    "$VLP" "$@" >out 2>err
    got=$?
    [ "$got" -eq "$want" ] || fail "vlp $*: exit code $got, not $want"
}

# Text that out or err must hold, or must not; a pattern of a line; the number of lines of out.
says() { grep -qF -- "$1" out || fail "no \"$1\" in the output"; }
matches() { grep -q -e "$1" out || fail "no line like \"$1\" in the output"; }
complains() { grep -qF -- "$1" err || fail "no \"$1\" on stderr"; }
silent_about() { ! grep -qF -- "$1" out || fail "\"$1\" in the output"; }
lines() { [ "$(wc -l <out)" -eq "$1" ] || fail "$(wc -l <out) lines, not $1"; }
