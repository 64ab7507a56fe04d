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
  -m, --minutes N    training time (default 6)
  -r, --recipe NAME  a recipe's name or file (default apps/quickstart.json)
  -f, --force        do the named steps again
  -h, --help         this text

steps: packages build fetch corpus index tokenizer pretrain eval classify search (default: all)

examples:
  apps/quickstart.sh
  apps/quickstart.sh --minutes 60 --out ./an-hour
  apps/quickstart.sh --force eval search
END
}

steps=(packages build fetch corpus index tokenizer pretrain eval classify search)
out=quickstart
minutes=6
recipe=$root/apps/quickstart.json
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
    -r | --recipe) recipe=$(value "$@") && shift 2 ;;
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

# One index of named sources: drawings to train on, Fashion-MNIST, and three emoji sets held out.
step_index() {
    local name
    "$vlp" index "$out/corpus.db" "$corpus/corpus.jsonl" --format jsonl --name drawings
    for name in emoji-other-vendor emoji-unseen emoji-unseen-other-vendor; do
        "$vlp" index "$out/corpus.db" "$corpus/$name.jsonl" --format jsonl --name "$name"
    done
    "$vlp" index "$out/corpus.db" "$out/fashion" --format idx --name fashion \
        --classes "$corpus/fashion-mnist.txt" --templates "$corpus/fashion-mnist-templates.txt"
    "$vlp" stats "$out/corpus.db" >&2
}

step_tokenizer() {
    "$vlp" tokenizer train "$out/corpus.db" --kind wordpiece --vocab 8000 --out "$out/tokenizer"
}

step_pretrain() {
    [[ $force -eq 0 ]] || rm -rf "$run"
    if [[ -e $run/recipe.json ]]; then
        "$vlp" pretrain --data "$out/corpus.db" --out "$run" --resume
    else
        "$vlp" pretrain "$recipe" --data "$out/corpus.db" --out "$run" \
            --tokenizer "$out/tokenizer" --max-minutes "$minutes"
    fi
}

# evaluate NAME SOURCE: retrieval both ways, beside chance and beside raw pixels.
evaluate() {
    say ""
    say "$1:"
    "$vlp" eval "$run" --data "$out/corpus.db" --split test --source "$2" --only retrieval \
        --pixels --train-source drawings "${@:3}"
}

step_eval() {
    evaluate "drawings never seen" drawings --report "$out/report.html"
    evaluate "emoji seen from another vendor only" emoji-other-vendor
    evaluate "emoji concepts never seen, same vendor" emoji-unseen
    evaluate "emoji concepts never seen, other vendor" emoji-unseen-other-vendor
    say ""
    say "Fashion-MNIST: its 10,000 test pictures by class names (its training pictures were among the pairs):"
    "$vlp" eval "$run" --data "$out/corpus.db" --split test --source fashion --only zero-shot \
        --classes "$corpus/fashion-mnist.txt" --templates "$corpus/fashion-mnist-templates.txt" \
        --pixels --pixel-side 28
}

# A folder of pictures that were never trained on, sorted into words.
step_classify() {
    "$vlp" classify "$run" "$corpus/images/emojione-unseen" \
        --classes animal,food,vehicle,building,person,clothing,flower,sport --top 2
}

step_search() {
    local image query
    "$vlp" embed "$out/corpus.db" --model "$run"
    for query in "red apple" "ankle boot" "flag"; do
        say "searching \"$query\""
        "$vlp" search "$out/corpus.db" "$query" --top 8 \
            --html "$out/search-${query// /-}.html"
    done
    image=$(find "$corpus/images/emojione-unseen" -name '*.jpg' | LC_ALL=C sort | sed -n 1p)
    say "searching pictures like $image"
    "$vlp" search "$out/corpus.db" --image "$image" --where "source=drawings" --top 8 \
        --html "$out/search-like-a-picture.html"
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
  $out/report.html                   what the model finds, and where it fails
  $out/search-red-apple.html         and the other searches beside it
Try next
  $vlp search $out/corpus.db "playing card" --where "source=drawings" --html cards.html
  $vlp search $out/corpus.db "dress" --where "source=fashion" --html dresses.html
  $vlp classify $run YOUR_PICTURES --classes cat,dog,car
  $vlp index mine.db YOUR_FOLDER
  $vlp pretrain vlp --size nano --data mine.db --out mine --max-minutes 60
  $vlp embed mine.db --model mine && $vlp search mine.db "YOUR WORDS"
Six minutes teach it a little; --minutes 60 --out ANOTHER_FOLDER teaches it more.
END
}

for name in "${chosen[@]}"; do
    do_step "$name"
done
[[ ${#chosen[@]} -lt ${#steps[@]} ]] || next_steps
