#!/bin/sh
# vlp classify: files, folders and lists; output forms; bad pictures; usage errors.
. "$(dirname "$0")/lib.sh"

run 0 classify run pictures --classes colours.txt
lines 30
sed -n 1p out | grep -q "^pictures/000.png	[a-z]*	0\.[0-9]*$" || fail "first line"
cut -f1 out | sort -c || fail "folders are walked in order"

run 0 classify run pictures/003.png --classes red,green --top 5 --json
lines 1
says '{"image":"pictures/003.png","predictions":[{"label":"'
[ "$(grep -o '"label"' out | wc -l)" -eq 2 ] || fail "top is at most the number of classes"
sum=$(grep -o '"score":[0-9.]*' out | cut -d: -f2 | awk '{s += $1} END {printf "%.3f", s}')
[ "$sum" = 1.000 ] || fail "probabilities add up to $sum"

run 0 classify run pictures/003.png --classes red,green --threshold 1 --json
says '"label":"unknown"'
says '"best":{"label":"'

run 0 classify run pictures/003.png --classes red,green --templates 'a photo of a {}' --csv --top 2
sed -n 1p out | grep -qx 'image,label,score,label2,score2' || fail "CSV header"
lines 2

# a list on standard input, with lines and with NULs; quoting in CSV
cp pictures/000.png 'a, "b".png'
printf '%s\n' 'pictures/001.png' 'a, "b".png' >list
"$VLP" classify run - --classes red,green --csv <list >out 2>err || fail "list on stdin"
lines 3
says '"a, ""b"".png",'
printf 'pictures/001.png\0pictures/002.png\0' >list
"$VLP" classify run - --classes red,green <list >out 2>err || fail "NULs on stdin"
lines 2

# bad pictures are named and skipped; the others keep their own answers
run 0 classify run pictures/000.png pictures/001.png --classes colours.txt
cp out good
: >empty.png
echo '<html>' >page.jpg
head -c 60 pictures/000.png >cut.png
run 3 classify run pictures/000.png empty.png page.jpg missing.png cut.png pictures/001.png \
    --classes colours.txt --errors errors.txt
cmp -s out good || fail "a bad picture changed another's answer"
complains "skipped empty.png: is empty"
complains "skipped page.jpg: "
complains "missing.png: No such file"
[ "$(wc -l <errors.txt)" -eq 4 ] || fail "errors file"
grep -q "^cut.png	" errors.txt || fail "cut.png in the errors file"

run 2 classify run pictures
complains "needs --classes"
run 2 classify run --classes a,b
run 2 classify run pictures --classes names.txt
complains "cannot open names.txt: No such file or directory; a list on the command line has commas"
run 2 classify nothing pictures --classes a,b
complains "nothing: no such model folder; give the folder of a run"
run 2 classify run/model.safetensors pictures --classes a,b
complains "a file; give the folder"
run 2 classify run pictures --classes a,b --treshold 1
complains 'did you mean "--threshold"'
run 2 classify run pictures --classes a,b --threshold 2
complains "--threshold"
mkdir nobody
run 2 classify run nobody --classes a,b
complains "no pictures under nobody"

run 2 classify run pictures --classes red,blue,red
complains 'the class "red" is listed twice'

run 2 classify run pictures/003.png --classes red,green --json --csv
complains "--json and --csv contradict each other"
