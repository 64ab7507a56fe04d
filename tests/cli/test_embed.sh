#!/bin/sh
# vlp embed: what is missing, once; resumed; gone and bad files.
. "$(dirname "$0")/lib.sh"

run 0 embed pairs.db --model run --json
says '"images":30,"embedded":30,"already":0,"skipped":0,"gone":0,"dimensions":16'
run 0 embed pairs.db --model run --json
says '"embedded":0,"already":30'

# a changed picture is missing again
cp pictures/001.png pictures/000.png
"$VLP" index pairs.db pictures.jsonl --quiet || fail "index again"
run 0 embed pairs.db --model run --json
says '"embedded":1,"already":29'

# gone files are told, by name
mv pictures/005.png elsewhere.png
run 3 embed pairs.db --model run --json --errors errors.txt
says '"gone":1'
complains "005.png: the file is gone"
grep -q "005.png" errors.txt || fail "errors file"

# a batch of another size embeds the same; pictures that nobody has decoded yet are checked first
"$MAKE_PICTURES" more 10 40
head -c 100 more/pictures/002.png >more/pictures/cut.png && mv more/pictures/cut.png more/pictures/002.png
"$VLP" index more.db more/pictures.jsonl --quiet
run 3 embed more.db --model run --batch 3 --json
says '"embedded":9'
complains "002.png"
run 0 search more.db "a red square" --model run --json
grep -o '"id":[0-9]*,"z":[-0-9.]*' out >first
rm more.db
"$VLP" index more.db more/pictures.jsonl --quiet
run 3 embed more.db --model run --json
run 0 search more.db "a red square" --json
grep -o '"id":[0-9]*,"z":[-0-9.]*' out >second
[ "$(cut -d, -f1 first)" = "$(cut -d, -f1 second)" ] || fail "batches of 3 and 64 differ"

# a picture that was good when it was checked and is gone now gets no vector
"$MAKE_PICTURES" later 10 40
"$VLP" index later.db later/pictures.jsonl --quiet --check
rm later/pictures/004.png
run 3 embed later.db --model run --json
says '"images":9,"embedded":9,"already":0,"skipped":1,'
complains "004.png"

# interrupted: what is done is saved, the same command goes on. Large pictures under many names make
# it last long enough.
"$MAKE_PICTURES" large 16 640
i=0
while [ $i -lt 10 ]; do
    mkdir -p many/$i
    ln large/pictures/*.png many/$i
    i=$((i + 1))
done
"$VLP" index many.db many --quiet --check || fail "index of a folder"
"$VLP" embed many.db --model run --batch 4 --threads 1 >out 2>err &
child=$!
while ! grep -q 'of 160 pictures' err; do
    kill -0 $child || fail "ended before the first progress line"
    sleep 0.05
done
kill -INT $child
wait $child
code=$?
[ $code -eq 130 ] || fail "interrupted: exit code $code"
complains "the same command goes on"
run 0 embed many.db --model run --json
silent_about '"already":0,'
says '"images":160,'

run 2 embed pairs.db
run 2 embed nothing.db --model run
complains "nothing.db"
[ ! -e nothing.db ] || fail "an index appeared"
run 2 embed pairs.db --model nothing
