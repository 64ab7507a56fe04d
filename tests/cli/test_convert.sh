#!/bin/sh
# vlp convert, and classification and search directly on a converted folder of Hugging Face's CLIP.
cases=$(cd "$(dirname "$0")/../data/parity" && pwd)
. "$(dirname "$0")/lib.sh"
parity=$(dirname "$VLP")/parity

run 0 convert "$cases/clip-hf" open --to openclip
says open
run 0 info open
matches "named as those of CLIP, OpenAI's and open_clip's names"
run 0 convert open hf --to hf
cp "$cases/clip-hf/case.json" "$cases/clip-hf/inputs.safetensors" \
    "$cases/clip-hf/expected.safetensors" hf
grep -q '"model_type": *"clip"' hf/config.json || fail "config.json"
"$parity" hf >out 2>err || fail "the reference's numbers after two conversions"

run 2 convert "$cases/clip-hf" new --to hgf
complains 'did you mean "hf"'
run 2 convert hf hf --to openclip
complains "name another"
run 2 convert "$cases/clip-openclip-custom" new --to hf
complains "--to openclip can hold them"
[ ! -e new ] || fail "a folder was left behind"
run 2 convert pairs.db new --to hf
run 2 convert hf
complains "a model and a new folder"

# the folder of a CLIP, with a vocabulary of letters: pictures are classified and found
clip_files hf
run 0 classify hf pictures/000.png pictures/001.png --classes red,green,blue
lines 2
cp out one
run 0 convert hf both --to openclip
run 0 convert both back --to hf
run 0 classify back pictures/000.png pictures/001.png --classes red,green,blue
cmp -s out one || fail "the classes changed on the way"
run 0 classify both pictures/000.png pictures/001.png --classes red,green,blue
cmp -s out one || fail "open_clip's folder gives other classes"
run 0 embed pairs.db --model hf
run 0 search pairs.db "a red square" --top 3
lines 3
