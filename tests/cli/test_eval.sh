#!/bin/sh
# vlp eval: retrieval, zero-shot, yardstick, CSV and HTML.
. "$(dirname "$0")/lib.sh"

run 0 eval run --data pairs.db --json
says '{"split":"test","images":7,"captions":14,"image_to_text":{"R@1":'
says '"text_to_image":{"R@1":'
says '"chance":{"image_to_text":{"R@1":'
silent_about zero_shot

run 0 eval run --data pairs.db --classes colours.txt --only zero-shot --json
says '"zero_shot":{"top1":'
silent_about text_to_image
run 0 eval run --data pairs.db --classes colours.txt
says "every picture of the split against every caption"
says "top-5 100.00 % (chance 100.00 %)"

# a model without a matching head cannot order anew
run 2 eval run --data pairs.db --rerank 4
complains "--rerank needs a model with a fusion stack and a matching head"
run 2 eval run --data pairs.db --rerank 4 --classes colours.txt --only zero-shot
complains "--rerank is of retrieval"

# the nearest training picture in raw pixels knows the colour of a shape on paper
run 0 eval run --data pairs.db --only retrieval --pixels --json
says '"pixels":{"train_images":23,'

run 0 eval run --data pairs.db --classes 'red,green,"blue" <&>,yellow,black' --only zero-shot \
    --confusion confusion.csv --report report.html --quiet
[ "$(wc -l <confusion.csv)" -eq 6 ] || fail "confusion has $(wc -l <confusion.csv) lines"
grep -q '^"""blue"" <&>",' confusion.csv || fail "CSV quoting"
grep -q '&quot;blue&quot; &lt;&amp;&gt;' report.html || fail "HTML escaping"
! grep -q 'http:\|https:\|<script' report.html || fail "an outside address"
[ "$(grep -o 'data:image/jpeg' report.html | wc -l)" -eq 7 ] || fail "seven pictures"
[ "$(awk -F, 'NR > 1 {for (i = NF - 4; i <= NF; i++) s += $i} END {print s}' confusion.csv)" -eq 5 ] ||
    fail "the confusion counts every picture of a known class once"

run 0 eval run --data pairs.db --report report.html --max 5 --json
says '"images":5,'
grep -q '<li class="right">' report.html || fail "no right caption among the best"

run 2 eval run
run 2 eval run --data pairs.db --split nowhere
complains "nowhere"
run 2 eval run --data pairs.db --only zero-shot
complains "needs --classes"
run 2 eval run --data pairs.db --classes cat,dog --only zero-shot
complains "label"
run 2 eval run --data pairs.db --only retreival

# options without a use
run 2 eval run --data pairs.db --templates colours.txt
complains "--templates means nothing without --classes"
run 2 eval run --data pairs.db --pixel-side 8
complains "--pixel-side means nothing without --pixels"
run 2 eval run --data pairs.db --only retrieval --classes cat,dog
complains "--only retrieval and --classes contradict each other"

# interrupted: said, and no figure of a part. Large pictures under many names make it last long enough.
"$MAKE_PICTURES" large 16 640
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
    mkdir -p many/$i
    ln large/pictures/*.png many/$i
    for n in 00 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15; do
        echo "{\"image\":\"many/$i/0$n.png\",\"caption\":\"a shape $n\",\"split\":\"test\"}"
    done
done >many.jsonl
echo '{"image":"pictures/000.png","caption":"a red square","split":"train"}' >>many.jsonl
"$VLP" index many.db many.jsonl --quiet --check || fail "index"
# interrupt PATTERN FILE ARGUMENTS...: Ctrl-C once the pattern stands in the file
interrupt() {
    pattern=$1 file=$2
    shift 2
    "$VLP" "$@" --threads 1 >out 2>err &
    child=$!
    while ! grep -q "$pattern" "$file" 2>/dev/null; do
        kill -0 $child || fail "ended before the interruption"
        sleep 0.02
    done
    kill -INT $child
    wait $child
    code=$?
    [ $code -eq 130 ] || fail "interrupted: exit code $code"
}
interrupt 'retrieval: 0 of 240 pictures' err eval run --data many.db --report part.html --json
complains "of 240 pictures; no figures are given for a part"
lines 0
[ ! -e part.html ] || fail "a report of a part"

# the test evaluation at the end of training: the model is there already
interrupt '"step": 1' last/state.json pretrain clip --size nano --set image_size=32 --set patch=16 \
    --set width=32 --set heads=2 --set vision_depth=1 --set text_depth=1 --set embedding=16 \
    --steps 1 --batch 1 --vocab 100 --data many.db --out last
complains "the model is trained and saved in last; only its last evaluation was interrupted"
complains "vlp eval last --data many.db --split test"
run 0 eval last --data pairs.db --quiet
exit 0
