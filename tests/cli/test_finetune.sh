#!/bin/sh
# vlp finetune: captions and questions are learnt by a model that the recipe blip made; refusals.
. "$(dirname "$0")/lib.sh"
tiny="--batch 8 --threads 2 --quiet --set warmup=0.05 --set lr=0.004"
run 0 pretrain blip --size nano --set image_size=32 --set patch=16 --set width=32 --set heads=2 \
    --set vision_depth=1 --set text_depth=2 --set embedding=16 --set momentum.queue=16 --steps 3 \
    --vocab 200 --data pairs.db --out start $tiny

# Questions about colour and shape, as the importer of VQA makes them.
sed 's/.*"image":"\([^"]*\)","caption":\["a \([a-z]*\) \([a-z]*\)".*"split":"\([a-z]*\)".*/\1 \2 \3 \4/' \
    pictures.jsonl | awk '
    function row(n, image, question, answer, part) {
        printf "%s{\"image\":\"%s\",\"question_id\":%d,\"question\":\"%s\",\"answer\":[\"%s\",\"%s\"]," \
               "\"split\":\"%s\"}", n == 1 ? "[" : ",\n", image, n, question, answer, answer, part }
    { row(2 * NR - 1, $1, "which colour is it", $2, $4); row(2 * NR, $1, "which shape is it", $3, $4) }
    END { print "]" }' >questions.json
run 0 index vqa.db questions.json --format vqa --quiet
run 0 finetune vqa --model start --data vqa.db --out answers --steps 240 --set data.val=train $tiny
losses() { grep '"losses"' "$1/metrics.jsonl" | sed -n "$2p" | grep -o '"lm":[0-9.]*' | head -1 | cut -d: -f2; }
awk -v first="$(losses answers 1)" -v last="$(losses answers 240)" 'BEGIN {exit !(last < first / 2)}' ||
    fail "the loss of answers went from $(losses answers 1) to $(losses answers 240)"
right=0
for i in 000 001 002 003 004 005; do
    truth=$(grep "pictures/$i" pictures.jsonl | sed 's/.*\["a \([a-z]* [a-z]*\)".*/\1/')
    run 0 answer answers "pictures/$i.png" "which colour is it" "which shape is it"
    lines 2
    [ "$(tr '\n' ' ' <out)" = "$truth " ] && right=$((right + 1))
done
[ "$right" -ge 4 ] || fail "only $right of 6 pictures were answered about"
grep -q '"answers_questions": true' answers/config.json || fail "the model does not say what it is"
run 2 caption answers pictures/000.png
complains "answers questions; it does not write captions"
run 2 answer answers pictures/000.png "which colour is it" --choices red,green
complains "cannot choose among given ones"

# The run is judged by its loss on the validation split, and the best model is what it leaves.
grep -q '"step":0,"eval":{"loss":' answers/metrics.jsonl || fail "no loss before the first step"
least=$(grep -o '"step":[0-9]*,"eval":{"loss":[0-9.]*' answers/metrics.jsonl | sort -t: -k4 -g | head -1 |
    sed 's/"step":\([0-9]*\).*/\1/')
grep -q "\"best_step\": $least" answers/summary.json || fail "the best step is $least"

# Captions.
run 0 finetune caption --model start --data pairs.db --out captions --steps 60 $tiny
awk -v first="$(losses captions 1)" -v last="$(losses captions 60)" 'BEGIN {exit !(last + 0.7 < first)}' ||
    fail "the loss of captions went from $(losses captions 1) to $(losses captions 60)"
run 0 caption captions pictures/000.png --json
says '"caption":"'

run 0 finetune vqa --model start --data vqa.db --plan --json
says '"parameters":'
run 2 finetune vqa --model start --data pairs.db --out never --steps 1
complains "no usable answered questions about images"
run 2 finetune vqas --model start --data vqa.db --out never --steps 1
complains 'did you mean "vqa"'
run 2 finetune vqa --data vqa.db --out never --steps 1
complains "needs --model"
run 2 finetune vqa --model run --data vqa.db --out never --steps 1
complains "a decoder that looks at pictures"
run 2 finetune vqa --model start --resume --out answers --data vqa.db
complains "leave the task, --model and --set away"
