#!/usr/bin/env bash
# Brings what building, testing and running need beyond Rust, Python and pip, and says what it brings. Does nothing where all is there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

say() { printf 'set-up: %s\n' "$*"; }
fail() { printf 'set-up: %s\n' "$*" >&2; exit 3; }
missing() { ! command -v "$1" >/dev/null 2>&1; }

missing cargo && fail "cargo is not on PATH; Rust comes from https://rustup.rs"
missing python3 && fail "python3 is not on PATH; apt-get install python3 python3-pip"

packages=()
missing bwrap && packages+=(bubblewrap)       # the sandbox
missing ip && packages+=(iproute2)            # a network namespace a rank, for meters of traffic
missing git && packages+=(git)
missing cc && packages+=(gcc libc6-dev)       # linking
if [ "${1:-}" = agents ]; then
    # Coding agents of npm: tests of attempts install Claude Code, Codex, Gemini CLI and Qwen Code (1 GB) once, into target/test-agents.
    missing node && packages+=(nodejs)
    missing npm && packages+=(npm)
fi
# Tests open the pages of reports in it.
case "${1:-}" in agents|tests) missing chromium && packages+=(chromium) ;; esac
# Tests build a torch extension, and see what of it a patch compiles anew.
case "${1:-}" in
    agents|tests)
        missing c++ && packages+=(g++)
        missing ccache && packages+=(ccache)
        ;;
esac
if [ ${#packages[@]} -gt 0 ]; then
    missing apt-get && fail "missing: ${packages[*]}; there is no apt-get here, install them by your own means"
    as_root=()
    if [ "$(id -u)" != 0 ]; then
        missing sudo && fail "missing: ${packages[*]}; install them as root: apt-get install ${packages[*]}"
        as_root=(sudo)
    fi
    say "apt-get install ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}")
    # A package list may be absent or old: fetched only where the first try says so.
    if ! "${install[@]}" </dev/null >/dev/null 2>&1; then
        "${as_root[@]}" apt-get update -qq </dev/null
        "${install[@]}" </dev/null >/dev/null
    fi
fi

if missing uv; then
    python3 -m pip --version >/dev/null 2>&1 || fail "neither uv nor pip is here; apt-get install python3-pip"
    say "pip install uv, into .tools/ of this checkout (the system's Python stays as it is)"
    # With --target pip needs no leave to touch an externally managed Python.
    python3 -m pip install --quiet --disable-pip-version-check --upgrade --target "$root/.tools" uv </dev/null
    missing uv && fail "pip installed uv, yet .tools/bin/uv is not there"
fi

if [ "${1:-}" = check ]; then
    # rustup's minimal profile has neither.
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 || fail "cargo $component is not here; rustup component add rustfmt clippy"
    done
fi

if [ "${1:-}" = tests ]; then
    # The kit's own tests: an environment of their own, from a hashed lock.
    venv="$root/.tools/kit-tests"
    lock="$root/python/tests.lock"
    if ! cmp -s "$lock" "$venv/built-from.lock"; then
        say "Python packages of python/tests.lock (torch among them), into .tools/kit-tests"
        rm -rf "$venv"
        uv venv --quiet --no-project --python 3.11 "$venv"
        uv pip sync --quiet --require-hashes --compile-bytecode --python "$venv/bin/python" "$lock"
        cp "$lock" "$venv/built-from.lock"
    fi
fi
