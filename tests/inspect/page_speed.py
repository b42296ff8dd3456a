"""Times pages of 20,000 operations in a real browser: opening, each tab, and searches.

    python -m tests.inspect.page_speed [OPERATIONS]

The exit status is 1 if a page takes half a second to open, or a tab or a search 0.2 s, in the
median of five tries.
"""

import json
import pathlib
import statistics
import sys
import tempfile

import hlotools
from tests.inspect import chromium

MIN_OPEN_MS = 500
MIN_ANSWER_MS = 200
TRIES = 5
SEARCHES = ("tanh", "op:dot", "op:dot line:37 shape:f32", "bytes>1e4", "fusion.33", "nothing")
# Runs a statement; the time is until the browser has drawn its effect.
_DRAWN = """new Promise((done) => {{
  const start = performance.now();
  {};
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
}})"""


def program_of(operations, combining="add"):
    """Return the HLO of a scheduled program of layers, each fusions, products and a collective."""
    files = ['1 "model.py"', "", "FunctionNames", '1 "layer"', "", "FileLocations"]
    files += [f"{n} {{file_name_id=1 function_name_id=1 line={n}}}" for n in range(1, 201)]
    files += ["", "StackFrames", *(f"{n} {{file_location_id={n}}}" for n in range(1, 201))]
    bodies, entry, last, count, step = [], [], "%p", 2, 0
    while count < operations:
        step += 1
        stack = (
            f'metadata={{op_name="jit(f)/layer_{step // 10}/x" stack_frame_id={step % 200 + 1}}}'
        )
        bodies += [
            f"%fused.{step} (a.{step}: f32[64,64]) -> f32[64,64] {{",
            f"  %a.{step} = f32[64,64]{{1,0}} parameter(0)",
            f"  %t.{step} = f32[64,64]{{1,0}} tanh(%a.{step}), {stack}",
            f"  ROOT %m.{step} = f32[64,64]{{1,0}} multiply(%t.{step}, %a.{step}), {stack}",
            "}\n",
        ]
        entry += [
            f"  %fusion.{step} = f32[64,64]{{1,0}} fusion({last}), kind=kLoop, "
            f"calls=%fused.{step}, {stack}",
            f"  %dot.{step} = f32[64,64]{{1,0}} dot(%fusion.{step}, %fusion.{step}), "
            f"lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {stack}",
        ]
        count += 5
        if step % 7 == 0:
            opcode = combining if step % 70 == 0 else "add"
            entry += [
                f"  %sum.{step} = f32[64,64]{{1,0}} {opcode}(%dot.{step}, {last}), {stack}",
                f"  %all.{step} = f32[64,64]{{1,0}} all-reduce(%sum.{step}), channel_id={step}, "
                f"replica_groups={{{{0,1}}}}, to_apply=%added, {stack}",
            ]
            count += 2
        last = f"%all.{step}" if step % 7 == 0 else f"%dot.{step}"
    lines = [
        "HloModule long, is_scheduled=true, num_partitions=2\n",
        "FileNames",
        *files,
        "\n",
        *bodies,
        "%added (x: f32[], y: f32[]) -> f32[] {",
        "  %x = f32[] parameter(0)",
        "  %y = f32[] parameter(1)",
        "  ROOT %z = f32[] add(%x, %y)",
        "}\n",
        "ENTRY %main (p: f32[64,64]) -> f32[64,64] {",
        '  %p = f32[64,64]{1,0} parameter(0), metadata={op_name="x"}',
        *entry,
        f"  ROOT %out = f32[64,64]{{1,0}} negate({last})",
        "}",
    ]
    return "\n".join(lines) + "\n"


def times_of(browser, path):
    """Return milliseconds by what was done with a page: a list of all tries of each."""
    times = {}
    for _ in range(TRIES):
        shown = browser.page(path.as_uri())
        shown.until("document.documentElement.dataset.drawn !== undefined")
        entry = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        times.setdefault("open", []).append(shown.run(entry))
        keys = shown.run("[...document.querySelectorAll('[data-key]')].map((e) => e.dataset.key)")
        for key in filter(None, keys):
            click = f"document.querySelector('[data-key=\"{key}\"]').click()"
            times.setdefault(f"tab {key}", []).append(shown.run(_DRAWN.format(click)))
        for query in SEARCHES:
            search = "hlofront.search ? hlofront.search.run() : hlofront.view.search()"
            into = f"(hlofront.search ?? hlofront.view).input.value = {json.dumps(query)}"
            spent = shown.run(_DRAWN.format(f"{into}; {search}"))
            times.setdefault(f"search {query}", []).append(spent)
        assert shown.problems == [], shown.problems
        shown.close()
    return times


def main(operations):
    before, after = program_of(operations), program_of(operations, "subtract")
    pages = {"program": hlotools.page(before), "diff": hlotools.diff(before, after).html()}
    slow = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with chromium.Chromium(chromium.find(), folder / "profile") as browser:
            for title, text in pages.items():
                path = folder / f"{title}.html"
                path.write_text(text, encoding="utf-8")
                print(f"{title}: {operations:,} operations, {len(text) / 1e6:.1f} MB")
                for what, all_tries in times_of(browser, path).items():
                    median = statistics.median(all_tries)
                    limit = MIN_OPEN_MS if what == "open" else MIN_ANSWER_MS
                    slow += median >= limit
                    mark = "" if median < limit else "  SLOW"
                    print(f"  {what:<32} {median:6.0f} ms, at most {max(all_tries):.0f}{mark}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
