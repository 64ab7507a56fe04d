#!/bin/bash
# check_includes.sh ROOT: the folders' one-way doors, and one file for each outside library.
#   1. A file includes "folder/..." only from the folders that its own folder may see.
#   2. datasets/ sees of the folders beside it the tokenizer and pixels only, never a model:
#      text/tokenizer.h, text/unicode.h, vision/image.h, vision/resize.h and vision/transform.h.
#   3. A header of an outside library is included by one .c file in the whole project.
set -euo pipefail
cd "$1"

folders="core text vision fusion objectives datasets train apps tests tools"
declare -A may_see=(
    [core]=""
    [text]="core"
    [vision]="core"
    [fusion]="core text vision"
    [objectives]="core text vision fusion"
    [datasets]="core text vision"
    [train]="core text vision fusion objectives datasets"
    [apps]="core text vision fusion objectives datasets train"
    [tools]="core vision"
    [tests]="core text vision fusion objectives datasets train tools"
)
datasets_sees=" text/tokenizer.h text/unicode.h vision/image.h vision/resize.h vision/transform.h "

# C11, POSIX, compiler and tool headers are nobody's property. A test program is its own world.
own='^(assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|tgmath|threads|time|uchar|wchar|wctype)\.h$'
own+='|^(dirent|dlfcn|fcntl|fnmatch|ftw|getopt|glob|grp|langinfo|libgen|netdb|poll|pthread|pwd|regex|sched|semaphore|spawn|syslog|termios|unistd|utime|malloc|execinfo|link|linux/.*|sys/.*|arpa/.*|net/.*|netinet/.*)\.h$'
own+='|^(omp|[a-z]+mmintrin|x86intrin|cpuid|arm_neon|arm_sve|sanitizer/.*)\.h$'

faults=0
fault() {
    printf '%s\n' "$*" >&2
    faults=$((faults + 1))
}

declare -A owner=()
while IFS=: read -r file line include; do
    folder=${file%%/*}
    name=${include#*[\"<]}
    name=${name%%[\">]*}
    if [[ $include == *\"* ]]; then
        [[ $folder == tests && (-e ${file%/*}/$name || -e tests/$name) ]] && continue
        [[ $name == */* ]] || fault "$file:$line: \"$name\" wants its folder, \"folder/$name\""
        seen=${name%%/*}
        [[ $seen == "$folder" || $name != */* ]] && continue
        if [[ " ${may_see[$folder]} " != *" $seen "* ]]; then
            fault "$file:$line: $folder/ may not see $seen/ (\"$name\")"
        elif [[ $folder == datasets && $seen != core && $datasets_sees != *" $name "* ]]; then
            fault "$file:$line: datasets/ may not see $name"
        fi
    elif [[ $folder != tests && ! $name =~ $own ]]; then
        if [[ $file != *.c ]]; then
            fault "$file:$line: <$name> belongs in one .c file, not in a header"
        elif [[ -n ${owner[$name]:-} && ${owner[$name]} != "$file" ]]; then
            fault "$file:$line: <$name> is included by ${owner[$name]} already"
        fi
        owner[$name]=$file
    fi
done < <(for folder in $folders; do
    [[ -d $folder ]] || continue
    find "$folder" -name '*.[ch]' -print0 |
        xargs -0 -r grep -Hn '^[[:space:]]*#[[:space:]]*include' || true # a file may have none
done | LC_ALL=C sort)

[[ ${#owner[@]} -gt 0 ]] || fault "no include of an outside library found: is $1 the project?"
[[ $faults -eq 0 ]] || { printf '%d forbidden includes\n' "$faults" >&2; exit 1; }
printf 'includes are fine; outside headers: %s\n' "${!owner[*]}"
