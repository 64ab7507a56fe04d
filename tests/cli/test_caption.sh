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

# marks that are not in the vocabulary
cp -r captions marks
sed 's/"bos_token_id": 42/"bos_token_id": 44/' captions/config.json >marks/config.json
run 2 caption marks pictures/000.png
complains "bos_token_id 44, but vocab_size is 44"

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

# a model of one's own: trained, captioned, searched
run 0 pretrain blip --size nano --set image_size=32 --set patch=16 --set width=32 --set heads=2 \
    --set vision_depth=1 --set text_depth=2 --set embedding=16 --set momentum.queue=16 --steps 40 \
    --batch 8 --vocab 200 --data pairs.db --out written --quiet --threads 2
losses() { sed -n "$1p" written/metrics.jsonl | grep -o '"lm":[0-9.]*' | head -1 | cut -d: -f2; }
awk -v first="$(losses 1)" -v last="$(losses 40)" 'BEGIN {exit !(last + 0.5 < first)}' ||
    fail "the loss of captions went from $(losses 1) to $(losses 40)"
run 0 caption written pictures/000.png pictures/001.png --json
lines 2
grep -q '"caption":"[a-z]' out || fail "no words in a caption"
run 0 embed pairs.db --model written
run 0 search pairs.db "a red square" --model written --rerank 5 --top 3
lines 3
run 2 answer written pictures/000.png "what"
complains "was not trained on questions"
run 2 pretrain blip --size nano --set fusion_depth=2 --steps 1 --data pairs.db --out never
complains "set one to false or 0"
run 2 pretrain clip --size nano --set lm.weight=1 --steps 1 --data pairs.db --out never
complains "lm needs a model with a decoder"
