#!/bin/sh
# vlp index: what was recognised, what was skipped and why, what must not hang or stay behind.
. "$(dirname "$0")/lib.sh"

# a row number stands with the file whose rows it counts, and every skip has a reason
cat >rows.csv <<'X'
image,caption
pictures/000.png,fine
pictures/nowhere.png,lost
pictures/001.png,
X
run 3 index new.db rows.csv --errors errors.tsv
complains 'rows.csv: table separated by ,, image column 1 "image", caption column 2 "caption"'
complains 'nowhere.png (rows.csv:3): missing: No such file'
complains 'pictures/001.png (rows.csv:4): empty caption'
! grep -q 'png:[0-9]' err || fail "a row number glued to a picture"
! grep -q ': $' err || fail "a blank reason"
grep -q "missing	No such file" errors.tsv || fail "reasons in the file"

# a first import that fails leaves nothing behind; a later one leaves what was there
printf 'image,caption\nnone.png,x\n' >bad.csv
run 2 index empty.db bad.csv
complains "no usable row"
[ ! -e empty.db ] && [ ! -e empty.db-wal ] || fail "an empty index stays"
run 2 index new.db bad.csv
run 0 stats new.db

# pipes and devices are refused, not waited for
mkfifo pipe
for special in pipe /dev/zero /dev/null; do
    run 2 index fifo.db "$special"
    complains "neither a file nor a folder"
    run 2 index "$special" rows.csv
    complains "not a regular file"
    run 2 tokenizer train "$special" --kind wordpiece --vocab 50 --out tok
    complains "not a regular file"
    run 2 classify run pictures/000.png --classes "$special"
    complains "not a regular file"
done
[ ! -e fifo.db ] || fail "an index of a pipe"

run 2 index new.db rows.csv --split test --split-hash 90,5,5
complains "give one of"
run 2 index new.db rows.csv --split-hash 90,5,50
complains "not 100"
run 2 search pairs.db red --model run --where "captoin~x"

# what every picture of a container is called
printf '\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2abcdefgh' >two-images-idx3-ubyte
run 0 index idx.db two-images-idx3-ubyte --quiet
"$VLP" embed idx.db --model run --quiet || fail "embed"
run 0 search idx.db "a red square" --top 2
says "two-images-idx3-ubyte#0"
says "two-images-idx3-ubyte#1"

# limits by option: of a picture's file, and of its pixels
mkdir limits
cp pictures/000.png limits/small.png
{ cat pictures/001.png && head -c 100000 /dev/zero; } >limits/long.png
run 3 index limits.db limits --max-bytes 50000
complains "long.png: too large"
complains "bytes; the limit is 50000 bytes"
silent_about "small.png"
run 0 index limits2.db limits --max-bytes 200000
run 2 index limits3.db limits --max-pixels 10
complains "pixels; the limit is 10 pixels"
run 2 index limits4.db limits --max-bytes 0
complains "--max-bytes"

# A read-only file system: what was made elsewhere is read, what has to be written says so. Only root
# may mount one.
mkdir fixed
run 0 index fixed/pairs.db pictures.jsonl --check
run 0 index fixed/unchecked.db pictures.jsonl
if mount --bind fixed fixed 2>/dev/null && mount -o remount,bind,ro fixed; then
    trap 'umount "$work/fixed"' EXIT
    run 0 stats fixed/pairs.db
    run 0 bench load fixed/pairs.db --seconds 0.1 --image-size 32
    run 0 pretrain vlp --size nano --data fixed/pairs.db --steps 1 --out fixed-run
    run 2 bench load fixed/unchecked.db --seconds 0.1 --image-size 32
    complains "fixed/unchecked.db: cannot"
    run 2 index fixed/pairs.db pictures.jsonl
    complains "fixed/pairs.db: cannot"
    run 2 index fixed/new.db pictures.jsonl
    complains "fixed/new.db: cannot"
    [ "$(ls fixed | wc -l)" -eq 2 ] || fail "something was written"
    umount fixed
    trap - EXIT
else
    umount fixed 2>/dev/null
    echo "$name: read-only file system not tried: may not mount one"
fi
