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

# A vocabulary of letters for a folder with a CLIP's config.json, and its preprocessing.
clip_files() {
    letters="a b c d e f g h i j k l m n o p q r s t u v w x y z"
    awk -v n="$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' "$1/config.json")" -v all="$letters" 'BEGIN {
        split(all, letter, " ")
        printf "{"
        for (i = 0; i < n - 2; i++)
            printf "\"%s\": %d, ", i < 26 ? letter[i + 1] : i < 52 ? letter[i - 25] "</w>" : "w" i, i
        printf "\"<|startoftext|>\": %d, \"<|endoftext|>\": %d}\n", n - 2, n - 1 }' >"$1/vocab.json"
    echo '#version: 0.2' >"$1/merges.txt"
    echo '{"tokenizer_class": "CLIPTokenizer"}' >"$1/tokenizer_config.json"
    size=$(sed -n 's/.*"image_size": *\([0-9]*\).*/\1/p' "$1/config.json")
    cat >"$1/preprocessor_config.json" <<JSON
{"do_resize": true, "size": {"shortest_edge": $size}, "resample": 3, "do_center_crop": true,
 "crop_size": {"height": $size, "width": $size}, "do_normalize": true,
 "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
JSON
}

# The names in a file of tensors, layers without their numbers.
tensor_names() {
    LC_ALL=C grep -ao '"[a-zA-Z_.0-9]*": *{ *"dtype"' "$1/model.safetensors" |
        sed 's/^"//; s/".*//; s/\.[0-9][0-9]*\./.N./' | LC_ALL=C sort -u
}
