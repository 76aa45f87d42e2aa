# Sourced by every recipe of the Makefile: where the tools are, and nothing that would bend a result.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="$root/.tools/bin:$HOME/.cargo/bin:$PATH"
# The kit is imported from many processes: without bytecode every import compiles it anew.
unset PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME VIRTUAL_ENV

# One cache of wheels for all that is built here, so that a framework is downloaded once. Environments are hard-linked from it,
# which needs one file system.
if [ -z "${UV_CACHE_DIR:-}" ] && command -v uv >/dev/null; then
    cache=$(uv cache dir 2>/dev/null || true)
    if [ -z "$cache" ] || ! mkdir -p "$cache" 2>/dev/null || [ "$(stat -c %d "$cache")" != "$(stat -c %d "$root")" ]; then
        cache="$root/.tools/uv-cache"
    fi
    export UV_CACHE_DIR="$cache"
fi

# uv does not read pip's settings: an index that pip was told of serves uv too, unless uv was told of another.
if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}${UV_INDEX:-}" ]; then
    index=${PIP_INDEX_URL:-$(python3 -m pip config get global.index-url 2>/dev/null || true)}
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX="$index"; fi
    unset index
fi
