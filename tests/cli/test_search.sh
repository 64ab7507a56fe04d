#!/bin/sh
# vlp search: texts, pictures, filters, how far hits stand out, output forms, what it says when it cannot.
. "$(dirname "$0")/lib.sh"

run 2 search pairs.db "a red square"
complains "run: vlp embed pairs.db --model MODEL"
run 2 search pairs.db "a red square" --model run
complains "run: vlp embed pairs.db --model run"
"$VLP" embed pairs.db --model run --quiet || fail "embed"

# the model is remembered; a picture finds itself
run 0 search pairs.db "a red square"
lines 10
run 0 search pairs.db --image pictures/004.png --top 3 --json
lines 3
sed -n 1p out | sed 's/"score":0.9999[0-9]*/"score":1.0/' |
    grep -q '^{"rank":1,"score":1.0,"path":"[^"]*/pictures/004.png","caption":"a black square","id":5,"z":' ||
    fail "finds itself"

# filters apply before the search: as many hits as asked for
run 0 search pairs.db "a red square" --where "split=test" --top 7 -0
[ "$(tr -cd '\0' <out | wc -c)" -eq 7 ] || fail "seven paths with NULs"
run 1 search pairs.db "a red square" --where "split=nowhere"
complains "no embedded picture passes the filter"
run 2 search pairs.db "a red square" --where "colour?red"

# combinations, -texts, short options beside them
run 0 search pairs.db "a square" +red -green 2:circle -k3
lines 3
complains 'query: +1 x "a square" +1 x "red" -1 x "green" +2 x "circle"'
run 0 search pairs.db "a square" --top 1
first=$(cut -f3 out)
run 0 search pairs.db "-a square" --top 30
[ "$(sed -n '$p' out | cut -f3)" = "$first" ] || fail "a negative text turns the order round"
run 2 search pairs.db "+"
complains "holds no text"
run 2 search pairs.db

# nothing stands out that far
run 1 search pairs.db "a red square" --least-z 50
complains "nothing stands out so far: the best of 30 pictures has z"
[ ! -s out ] || fail "hits in spite of it"

# words in captions and file names
run 0 search pairs.db "017" --hybrid --top 3
says "/pictures/017.png"
run 0 search pairs.db "017" --hybrid --least-z 50
lines 1

run 2 search pairs.db "a red square" --rerank 5
complains "matching head"

# with a matching head: probabilities, best first, over the N best
"$VLP" pretrain vlp --size nano --set image_size=32 --set patch=16 --set width=32 --set heads=2 \
    --set vision_depth=1 --set text_depth=1 --set fusion_depth=1 --set embedding=16 --steps 2 \
    --batch 8 --vocab 200 --data pairs.db --out matching --quiet || fail "pretrain vlp"
cp pairs.db fused.db
"$VLP" embed fused.db --model matching --quiet || fail "embed"
run 0 search fused.db "a red square" --rerank 6 --json
lines 6
grep -o '"score":[0-9.]*' out | cut -d: -f2 >scores
sort -rn scores | cmp -s - scores || fail "probabilities are not in order"
awk '$1 <= 0 || $1 >= 1 {exit 1}' scores || fail "probabilities"
run 2 search fused.db --image pictures/000.png --rerank 5
complains "--rerank needs a text"

# the gallery holds its pictures and no markup from captions
cat >nasty.jsonl <<'X'
{"image":"pictures/000.png","caption":"<script>alert(\"1\")</script> & 'quotes'"}
X
"$VLP" index nasty.db nasty.jsonl --quiet
"$VLP" embed nasty.db --model run --quiet
run 0 search nasty.db '<b>"bold"</b>' --html gallery.html
grep -q '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;quotes&#39;' gallery.html || fail "escaping"
! grep -q '<script\|<b>' gallery.html || fail "markup from a caption"
grep -q 'src="data:image/jpeg;base64,/9j/' gallery.html || fail "no thumbnail"
! grep -q 'http:\|https:' gallery.html || fail "an outside address"

# moved files are left out, and told
mv pictures/004.png elsewhere.png
run 0 search pairs.db --image elsewhere.png --top 3
silent_about "pictures/004.png"
lines 3
complains "1 hits left out"

run 2 search pairs.db --image missing.png
complains "missing.png"
run 2 search missing.db "a dog"
complains "no index at missing.db"

run 2 search pairs.db red --where "width>abc"
complains "a number is wanted"
run 2 search pairs.db red --where "width>nan"
complains "a number is wanted"

# a damaged embedding is left out and named; vlp embed makes it again
cp fused.db hurt.db
damage() { "$RUN_SQL" hurt.db "UPDATE embeddings SET $1 WHERE image_id=(SELECT id FROM images WHERE path LIKE '%/$2')" || fail "damage"; }
damage "vector=x'0011'" 003.png
damage "vector=zeroblob(60)||x'0000c07f'" 007.png
damage "dim=3" 000.png
run 0 search hurt.db "a red square" --model matching --top 30
lines 26
complains "3 pictures left out: their embeddings are damaged (the first: "
complains "/pictures/000.png); run: vlp embed hurt.db --model"
run 3 embed hurt.db --model matching --json # 004.png is gone
says '"embedded":3,"already":27,'
says '"damaged":3'
run 0 search hurt.db "a red square" --top 30
lines 29
! grep -q damaged err || fail "damaged still"

# options that contradict each other
run 0 search pairs.db red --csv --top 2
lines 3
matches '^rank,score,path,caption,id,z$'
matches '^2,-*0[.0-9]*,.*[.]png,a .*,[0-9]*,[-.0-9]*$'
run 2 search pairs.db red --csv --json
run 2 search pairs.db red --json --print0
complains "--json and --print0 contradict each other"
run 2 search pairs.db red --quiet --verbose
complains "--quiet and --verbose contradict each other"

# nothing is left beside an index that nobody uses any more
ls | grep -e '-wal$' -e '-shm$' && fail "write-ahead logs are left"
exit 0
