#!/bin/sh
# vlp caption and vlp answer on reference checkpoints with made-up vocabularies: output forms,
# decoding options, bad pictures, models that cannot.
cases=$(cd "$(dirname "$0")/../data/parity" && pwd)
. "$(dirname "$0")/lib.sh"

# folder NAME CASE N: the case's model with a vocabulary of N words; the model's own two come after
folder() {
    mkdir "$1"
    cp "$cases/$2/config.json" "$cases/$2/model.safetensors" "$1"
    awk -v n="$3" 'BEGIN {
        split("[PAD] [CLS] [SEP] [MASK] [UNK]", special, " ")
        for (i = 0; i < n; i++) print i < 5 ? special[i + 1] : "word" i }' >"$1/vocab.txt"
}
folder captions blip-caption 42
folder hf blip-hf-caption 42
folder answers blip-vqa 38

run 0 caption captions pictures/000.png pictures/001.png pictures/002.png
lines 3
matches '^pictures/000.png	word[0-9]* word'
cp out beams
run 0 caption captions pictures/000.png pictures/001.png pictures/002.png --batch 1
cmp -s out beams || fail "the size of the batch changes captions"
run 0 caption captions pictures/000.png --beams 1 --json
says '{"image":"pictures/000.png","caption":"word'

# what captions begin with, how long they get, what cannot be said
run 0 caption captions pictures/000.png --prompt "word7 word9"
matches '	word7 word9 '
run 0 caption captions pictures/000.png --max-length 6 --min-length 6
[ "$(wc -w <out)" -eq 6 ] || fail "five words and a path"
run 2 caption captions pictures/000.png --max-length 21
complains "2 to 20 are possible with this model"
run 2 caption captions pictures/000.png --max-length 5 --prompt "word7 word8 word9 word10"
complains "the prompt has"
run 2 caption captions pictures/000.png --min-length 9 --max-length 8
complains "--min-length 9 is above --max-length 8"

# drawn texts: by the seed alone
run 0 caption captions pictures/000.png pictures/001.png --sample --seed 7
cp out seven
run 0 caption captions pictures/000.png pictures/001.png --sample --seed 7 --batch 1
cmp -s out seven || fail "the same seed, another text"
run 0 caption captions pictures/000.png pictures/001.png --sample --seed 8
cmp -s out seven && fail "another seed, the same text"
run 2 caption captions pictures/000.png --seed 7
complains "--seed is about sampling; add --sample"
run 2 caption captions pictures/000.png --sample --beams 2
complains "it has no --beams"

run 0 caption hf pictures/000.png --max-length 14
lines 1

# bad pictures
: >empty.png
run 3 caption captions pictures/000.png empty.png pictures/001.png pictures/002.png --errors errors.txt
cmp -s out beams || fail "a bad picture changed another's caption"
complains "skipped empty.png: is empty"
grep -q "^empty.png	" errors.txt || fail "errors file"
run 2 answer answers empty.png "word7"
complains "empty.png: is empty"

# questions
run 0 answer answers pictures/000.png "word7 word8?" "word9"
lines 2
run 0 answer answers pictures/000.png "word7 word8?" --json
says '{"image":"pictures/000.png","question":"word7 word8?","answer":"word'
run 0 answer answers pictures/000.png "word7" --choices "word5,word6 word7,word10" --top 2 --json
says '"choices":[{"answer":"word'
[ "$(grep -o '"score"' out | wc -l)" -eq 2 ] || fail "top"
run 0 answer answers pictures/000.png "word7" --choices "word5,word6 word7,word10" --top 9
sum=$(tr '\t' '\n' <out | grep '^[01]\.' | awk '{s += $1} END {printf "%.2f", s}')
[ "$sum" = 1.00 ] || fail "probabilities add up to $sum"

# models that cannot
run 2 caption answers pictures/000.png
complains "answers questions; it does not write captions"
run 2 answer captions pictures/000.png "word7"
complains "was not trained on questions"
run 2 caption run pictures/000.png
complains "has no decoder"
run 2 classify captions pictures/000.png --classes a,b
complains "has no space that pictures and texts share"
run 2 caption captions
run 2 answer answers pictures/000.png
complains "a question"
