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
