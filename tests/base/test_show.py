"""Documents are laid out in lines as wide as they may be, however deep they are."""

import pytest

from hlofront.base import show


def call(name, *arguments):
    return show.concat((name, show.block("(", arguments, ")")))


def test_a_group_stays_on_one_line_up_to_the_width():
    document = call("f", "aaaa", "bbbb")
    assert show.render(document, 12) == "f(aaaa bbbb)"
    assert show.render(document, 11) == "f(\n  aaaa\n  bbbb\n)"


def test_inner_groups_decide_for_themselves():
    document = call("f", call("g", "a", "b"), call("h", "cccccc", "dddddd"))
    assert show.render(document, 12) == "f(\n  g(a b)\n  h(\n    cccccc\n    dddddd\n  )\n)"


def test_a_group_does_not_look_at_what_follows_it():
    document = show.concat((call("f", "a"), "bbbbbbbb"))
    assert show.render(document, 4) == "f(a)bbbbbbbb"


def test_fill_puts_as_many_on_a_line_as_fit():
    words = show.fill([f"w{n}" for n in range(7)])
    # A break looks no farther than itself, so that the last word may stick out.
    assert show.render(words, 8) == "w0 w1 w2\n  w3 w4 w5\n  w6"
    assert show.render(words, 80) == "w0 w1 w2 w3 w4 w5 w6"


def test_breaks_say_what_stands_for_them_on_one_line():
    document = show.group(show.join(show.Break("; "), "abc"))
    assert show.render(document, 7) == "a; b; c"
    assert show.render(document, 6) == "a\nb\nc"


@pytest.mark.parametrize("documents", [(), ("a",), ("a", "b")])
def test_the_empty_and_the_short(documents):
    assert show.render(show.join(", ", documents)) == ", ".join(documents)
    assert show.width_of(show.join(", ", documents)) == len(", ".join(documents))


def test_depth_is_not_limited():
    document = "x"
    for _ in range(5000):
        document = call("f", document)
    assert show.render(document, 10**6) == "f(" * 5000 + "x" + ")" * 5000
    assert len(show.render(document, 80).split("\n")) == 2 * 5000 + 1


def test_notes_stand_in_a_column_beside_the_line_where_they_begin():
    noted = show.noted(call("f", "aaaa", "bbbb"), ["first", "second"])
    assert show.render(noted, 8) == ("f(     # first\n       # second\n  aaaa\n  bbbb\n)")
    assert show.render(noted) == "f(aaaa bbbb) # first\n             # second"
    assert show.render(noted, note_prefix=" -- ").startswith("f(aaaa bbbb) -- first\n")


def test_styles_are_switched_where_text_follows():
    document = show.concat(
        (show.styled("let", "blue", "bright"), show.LINE, "x", show.styled(":t", "magenta"))
    )
    assert show.render(document) == "let\nx:t"
    text = show.render(document, color=True)
    assert text == "\x1b[34;1mlet\n\x1b[39;22mx\x1b[35m:t\x1b[39m"


def test_styles_nest():
    inner = show.styled("b", intensity="dim")
    document = show.concat((show.styled(show.concat(("a", inner, "c")), "red"), "d"))
    text = show.render(document, color=True)
    assert text == "\x1b[31ma\x1b[2mb\x1b[22mc\x1b[39md"


def test_notes_are_dim_and_do_not_count():
    document = show.noted(show.styled("let", "blue"), ["n" * 100])
    text = show.render(show.group(document), 10, color=True)
    assert text == f"\x1b[34mlet\x1b[39m\x1b[2m # {'n' * 100}\x1b[22m"
