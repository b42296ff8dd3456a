#!/usr/bin/env bash
# scripts/release.sh [FOLDER]: build a release into FOLDER (dist/VERSION), check it, and try it.
#
# The wheel and the source distribution are built from the committed files, their metadata is checked
# as PyPI does it, and each is installed into a fresh environment of each supported Python, where the
# smoke tests and examples run without the checkout. At the end it prints the command that publishes,
# and does not run it. RELEASE_PYTHONS="3.12" tries fewer Pythons.
set -euo pipefail
cd "$(dirname "$0")/.."
pythons=${RELEASE_PYTHONS:-3.11 3.12 3.13}
started=$SECONDS

say() { printf '\n===== [%3ds] %s\n' $((SECONDS - started)) "$*"; }
fail() { printf 'release: %s\n' "$*" >&2; exit 1; }

# find_python 3.12: prints the path of an interpreter of that version, or fails.
find_python() {
  local candidate
  for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
    if "$candidate" -c "import sys; assert '%d.%d' % sys.version_info[:2] == '$1'" 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return 0
    fi
  done
  return 1
}

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' hlofront/base/version.py)
[ -n "$version" ] || fail "hlofront/base/version.py has no version"
out=$(mkdir -p "${1:-dist/$version}" && cd "${1:-dist/$version}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say "hlofront $version"
grep -q "^## $version ([0-9-]*)$" CHANGELOG.md ||
  fail "CHANGELOG.md has no section '## $version (DATE)': write it"
compgen -G "tests/export/artifacts/hlofront-$version-jaxlib-*" >/dev/null ||
  fail "there are no saved programs of $version: run python -m tests.export.releases --write"
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
  fail "there are changes that are not committed, which a release would not have"

say "build"
rm -f "$out"/hlofront-*
read -r first _ <<<"$pythons"
python=$(find_python "$first") || fail "no Python $first on this machine"
"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install -qq build twine
mkdir "$work/source"
git archive HEAD | tar -x -C "$work/source"
# The wheel is built from the source distribution, so that this is complete.
"$work/tools/bin/python" -m build "$work/source" --outdir "$out" >"$work/build.log" 2>&1 ||
  { cat "$work/build.log"; fail "the build failed"; }
wheel=$out/hlofront-$version-py3-none-any.whl
sdist=$out/hlofront-$version.tar.gz
[ -f "$wheel" ] && [ -f "$sdist" ] || fail "expected $wheel and $sdist"
ls -lh "$out"

say "check the metadata"
"$work/tools/bin/python" -m twine check --strict "$wheel" "$sdist"

# What the tests and examples need, outside of the checkout, so that only the installed package counts.
mkdir "$work/run"
cp -r "$work"/source/{tests,examples,pyproject.toml} "$work/run"

for number in $pythons; do
  for file in "$wheel" "$sdist"; do
    say "Python $number, $(basename "$file")"
    python=$(find_python "$number") || fail "no Python $number on this machine"
    folder=$work/$number-$(basename "$file")
    "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install -qq "hlofront @ file://$file" pytest hypothesis
    (
      cd "$work/run"
      export HLOFRONT_CACHE=off
      "$folder/bin/hlofront" --version | grep -Fx "hlofront $version"
      "$folder/bin/python" -P -W error -c 'import hlofront as jax; print(jax.jit(lambda x: x + 1)(1.0))'
      "$folder/bin/hlofront" cost examples/model.py:step | tail -n +2 | head -n 3
      HLOFRONT_AS_JAX=1 "$folder/bin/python" -P -c 'import jax; print("as jax", jax.__version__)'
      "$folder/bin/python" -P -c 'import hlofront; open(hlofront.__file__ + "i").close()'  # the stubs
      "$folder/bin/python" -P examples/pde.py 1600 | tail -n 3
      "$folder/bin/python" -P -m pytest -q -p no:cacheprovider tests/smoke tests/export/test_releases.py
    )
    rm -rf "$folder"
  done
done

say "all of it passed. To publish, with a token for PyPI in TWINE_PASSWORD:"
echo "git tag v$version && git push origin v$version && python -m pip install twine &&" \
  "TWINE_USERNAME=__token__ python -m twine upload $wheel $sdist"
