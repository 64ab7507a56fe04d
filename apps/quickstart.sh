#!/bin/bash
# From a fresh Debian 12 to a trained, evaluated and searchable model.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tools/packages.sh
source "$root/tools/packages.sh"

usage() {
    cat <<'END'
usage: apps/quickstart.sh [options] [STEP...]

Installs what is missing, builds vlp, fetches a real corpus of captioned drawings from Debian
packages (350 MB, not installed), trains a small model on it, evaluates it on drawings it has not
seen, and searches them. Run it again to continue where it stopped. Needs 2 GB of disk, no GPU.

  -o, --out FOLDER   where everything goes (default ./quickstart)
  -m, --minutes N    training time (default 30)
  -s, --size SIZE    nano, tiny, small or base (default tiny)
  -f, --force        do the named steps again
  -h, --help         this text

steps: packages build fetch corpus index tokenizer pretrain eval classify search (default: all)

examples:
  apps/quickstart.sh
  apps/quickstart.sh --minutes 5 --size nano --out /tmp/first-look
  apps/quickstart.sh --force eval search
END
}

steps=(packages build fetch corpus index tokenizer pretrain eval classify search)
out=quickstart
minutes=30
size=tiny
force=0
chosen=()

value() {
    [[ $# -ge 2 && -n $2 ]] || die "$1 wants a value; see apps/quickstart.sh --help"
    printf '%s' "$2"
}

while [[ $# -gt 0 ]]; do
    case $1 in
    -o | --out) out=$(value "$@") && shift 2 ;;
    -m | --minutes) minutes=$(value "$@") && shift 2 ;;
    -s | --size) size=$(value "$@") && shift 2 ;;
    -f | --force) force=1 && shift ;;
    -h | --help) usage && exit ;;
    -*) die "unknown option $1; see apps/quickstart.sh --help" ;;
    *)
        [[ " ${steps[*]} " == *" $1 "* ]] || die "unknown step $1; steps are: ${steps[*]}"
        chosen+=("$1")
        shift
        ;;
    esac
done
[[ $minutes =~ ^[1-9][0-9]*$ ]] || die "--minutes wants a whole number, not \"$minutes\""
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${steps[@]}")

mkdir -p "$out"
out=$(cd "$out" && pwd)
vlp=$root/build/vlp
run=$out/run
corpus=$out/corpus

# ---- steps: each is done once, `done_PART` in the work folder says so --------------------------

step_packages() {
    install_packages "${vlp_build_packages[@]}"
}

step_build() {
    (cd "$root" && cmake --workflow --preset release) >"$out/build.log" 2>&1 || {
        tail -n 20 "$out/build.log" >&2
        die "the build failed; the whole output is in $out/build.log"
    }
}

# Fetched packages are unpacked, never installed: they run no script and bring no dependency.
step_fetch() {
    local name deb
    mkdir -p "$out/debs" "$out/packages"
    for name in "${vlp_corpus_packages[@]}"; do
        [[ -e $out/packages/$name/.unpacked ]] && continue
        deb=$(find "$out/debs" -name "${name}_*.deb" | sed -n 1p)
        if [[ -z $deb ]]; then
            say "fetching $name"
            (cd "$out/debs" && apt-get download -q "$name" >/dev/null 2>"$out/fetch.log") ||
                die "cannot fetch $name ($(tail -n 1 "$out/fetch.log")); try apt-get update, or put its .deb into $out/debs"
            deb=$(find "$out/debs" -name "${name}_*.deb" | sed -n 1p)
        fi
        rm -rf "$out/packages/$name"
        mkdir -p "$out/packages/$name"
        dpkg-deb -x "$deb" "$out/packages/$name" ||
            die "$deb is damaged; delete it and run again"
        touch "$out/packages/$name/.unpacked"
    done
}

step_corpus() {
    local file fashion=$out/packages/dataset-fashion-mnist/usr/share/datasets/fashion-mnist
    mkdir -p "$corpus" "$out/fashion"
    "$root/build/vlp-corpus" "$out/packages" "$corpus" >"$corpus/counts.tsv"
    cat "$corpus/counts.tsv" >&2
    for file in "$fashion"/*-ubyte.gz; do
        gzip -dc "$file" >"$out/fashion/$(basename "$file" .gz)"
    done
}

step_index() {
    local name
    "$vlp" index "$out/corpus.db" "$corpus/corpus.jsonl" --format jsonl
    for name in emoji-other-vendor emoji-unseen emoji-unseen-other-vendor; do
        "$vlp" index "$out/$name.db" "$corpus/$name.jsonl" --format jsonl
    done
    "$vlp" index "$out/fashion.db" "$out/fashion" --format idx \
        --classes "$corpus/fashion-mnist.txt" --templates "$corpus/fashion-mnist-templates.txt"
    "$vlp" stats "$out/corpus.db" >&2
}

step_tokenizer() {
    "$vlp" tokenizer train "$out/corpus.db" --kind wordpiece --vocab 4000 --out "$out/tokenizer"
}

step_pretrain() {
    local resume=()
    [[ -d $run ]] && resume=(--resume)
    "$vlp" pretrain vlp --data "$out/corpus.db" --out "$run" --size "$size" \
        --set tokenizer="$out/tokenizer" --max-minutes "$minutes" "${resume[@]}"
}

# Drawings never seen; the same emoji by another vendor; emoji concepts never seen, by both vendors.
step_eval() {
    local name
    say "held-out drawings:"
    "$vlp" eval "$run" --data "$out/corpus.db" --split test --report "$out/report.html"
    for name in emoji-other-vendor emoji-unseen emoji-unseen-other-vendor; do
        say "${name//-/ }:"
        "$vlp" eval "$run" --data "$out/$name.db" --split test
    done
}

# Zero-shot: no picture of these folders' classes was labelled in training.
step_classify() {
    "$vlp" classify "$run" "$corpus/images/emojione-unseen" \
        --classes animal,food,vehicle,building,person,clothing,flower --top 2
}

step_search() {
    local image
    "$vlp" embed "$out/corpus.db" --model "$run"
    "$vlp" search "$out/corpus.db" "red apple" --top 24 --html "$out/search-text.html"
    image=$(find "$corpus/images/emojione-unseen" -name '*.jpg' | LC_ALL=C sort | sed -n 1p)
    "$vlp" search "$out/corpus.db" --image "$image" --top 24 --html "$out/search-image.html"
}

# ---- running them ------------------------------------------------------------------------------

is_done() {
    [[ $force -eq 0 && -e $out/.done/$1 ]]
}

do_step() {
    local name=$1 started=$SECONDS
    if is_done "$name"; then
        say "== $name: done before"
        return
    fi
    say "== $name"
    "step_$name"
    say "== $name: $((SECONDS - started)) s"
    # Packages and build are cheap to look at again, and may have to be.
    [[ $name == packages || $name == build ]] || { mkdir -p "$out/.done" && touch "$out/.done/$name"; }
}

next_steps() {
    cat >&2 <<END

Done in $((SECONDS / 60)) min. Look at
  $out/report.html          what the model finds, and where it fails
  $out/search-text.html     "red apple"
  $out/search-image.html    pictures like a picture
Try next
  $vlp search $out/corpus.db "a bird" --top 10
  $vlp search $out/corpus.db "hat" -- -black --html hats.html
  $vlp serve $out/corpus.db --model $run
  $vlp classify $run YOUR_PICTURES --classes cat,dog,car
  $vlp index mine.db YOUR_FOLDER && $vlp pretrain vlp --data mine.db --out mine --init $run
END
}

for name in "${chosen[@]}"; do
    do_step "$name"
done
[[ ${#chosen[@]} -lt ${#steps[@]} ]] || next_steps
