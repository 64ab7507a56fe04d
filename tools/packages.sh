# The Debian packages that vlp needs, in one place: sourced by apps/quickstart.sh and tests/run.sh.
# shellcheck shell=bash disable=SC2034

vlp_build_packages=(
    gcc libc6-dev cmake ninja-build pkg-config
    libopenblas-dev libdnnl-dev libpng-dev libjpeg62-turbo-dev libstb-dev
    libsqlite3-dev libutf8proc-dev libjansson-dev libxxhash-dev libminizip-dev zlib1g-dev
    libarchive-dev libwebp-dev libgif-dev libtiff-dev
)
# clang builds the fuzz targets.
vlp_test_packages=(libcmocka-dev clang libclang-rt-dev libomp-dev)
vlp_corpus_packages=(
    openclipart-png tuxpaint-stamps-default pysiogame
    ruby-tanuki-emoji ruby-gemojione dataset-fashion-mnist
)

say() {
    printf '%s\n' "$*" >&2
}

die() {
    say "error: $*"
    exit 1
}

# as_root COMMAND...: as root, through sudo where needed.
as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 127
    fi
}

# missing_packages NAME...: those not installed, a line each.
missing_packages() {
    local name
    for name in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
            printf '%s\n' "$name"
    done
}

# install_packages NAME...: installs what is missing; says what to do where that is not allowed.
install_packages() {
    local missing
    command -v dpkg-query >/dev/null ||
        die "this script knows Debian packages only; docs/corpus.md lists what to install elsewhere"
    mapfile -t missing < <(missing_packages "$@")
    if [[ ${#missing[@]} -eq 0 ]]; then
        say "packages: all there"
        return
    fi
    say "packages: installing ${missing[*]}"
    if [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null; then
        die "not root and no sudo; run as root: apt-get install ${missing[*]}"
    fi
    as_root apt-get update -q >/dev/null ||
        say "packages: apt-get update failed, trying with the lists that are there"
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null ||
        die "apt-get could not install: ${missing[*]}"
}
