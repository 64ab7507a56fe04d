# Sourced by the scripts: . "$(dirname "$0")/lib.sh". VLP is the program, $1 the fixture's folder.
set -eu
work=$1
out=$work/$(basename "$0" .sh).out
err=$work/$(basename "$0" .sh).err

fail() {
    echo "FAILED: $*" >&2
    cat "$out" "$err" >&2
    exit 1
}

# exits CODE vlp-arguments...: runs the program, its streams into $out and $err
exits() {
    wanted=$1
    shift
    code=0
    "$VLP" "$@" >"$out" 2>"$err" || code=$?
    [ "$code" -eq "$wanted" ] || fail "vlp $*: exit code $code, wanted $wanted"
}

# The last run's stdout or stderr has a line that matches.
says() { grep -q -e "$1" "$out" || fail "stdout lacks: $1"; }
warns() { grep -q -e "$1" "$err" || fail "stderr lacks: $1"; }
