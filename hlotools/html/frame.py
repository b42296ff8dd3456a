"""Pages in notebooks: compressed, in a frame without access to the notebook."""

import base64
import gzip
import html

# A notebook keeps the page of each displayed result, and some viewers load all of them together.
_LARGEST = 6 << 20
_HEIGHT = 640
# The scripts and styles of a page are 150 KB. Compressed, they fit in each output of a notebook: an
# output that relied on an earlier one's would be empty once that one is run again or deleted.
_LOADER = """<!doctype html><meta charset="utf-8"><noscript>A script in this frame draws the page: \
allow scripts to see it.</noscript><script>
const packed = Uint8Array.from(atob("PACKED"), (letter) => letter.charCodeAt(0));
const text = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
new Response(text).text().then((page) => {
  document.open();
  document.write(page);
  document.close();
});
</script>"""


def frame(document: str) -> str:
    """Return a page in a frame, which has no access to the notebook; a note for too large ones."""
    packed = base64.b64encode(gzip.compress(document.encode(), mtime=0)).decode()
    if len(packed) > _LARGEST:
        return (
            f"<p>The page has {len(document) >> 20} MiB: write it to a file, with "
            "<code>hlofront.inspect.page</code>, <code>hlotools.page</code> or "
            "<code>Diff.html()</code>.</p>"
        )
    loader = html.escape(_LOADER.replace("PACKED", packed), quote=True)
    return (
        f'<iframe srcdoc="{loader}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {_HEIGHT}px; border: 1px solid #8885"></iframe>'
    )


class Page(str):
    """The text of an HTML page, to be written to a file; a notebook shows the page itself."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return frame(self)

    def __repr__(self) -> str:
        # The text is long, and notebooks store this with the page.
        return f"<a page of {len(self):,} characters: write it to a file, as text>"
