"""What must be equal between our result and the reference's, and how closely."""

import difflib

from tests.support.closeness import assert_close, assert_same_results, public_class


def check(ours, theirs, tolerance=None, instead=None):
    """Raises AssertionError that says how our description of a program differs from theirs.

    `instead` names a class of errors that ours may raise where the reference raises another.
    """
    for mode, wanted in theirs.items():
        found = ours[mode]
        assert found.get("warned") == wanted.get("warned"), (
            f"{mode}: warned {found.get('warned')}, the reference {wanted.get('warned')}"
        )
        if "error" in wanted:
            check_error(mode, found, wanted, instead)
        elif "error" in found:
            raise AssertionError(
                f"{mode}: raised {found['error'][0]}; the reference gives "
                f"{_brief(wanted)}\n{found['traceback']}"
            )
        elif "count" in wanted:
            check_count(mode, found, wanted)
        elif "text" in wanted:
            check_text(mode, found["text"], wanted["text"])
        else:
            check_values(mode, found, wanted, tolerance)


def check_error(mode, found, wanted, instead):
    public = public_class(wanted["error"])
    if "error" not in found:
        raise AssertionError(
            f"{mode}: gave {_brief(found)}; the reference raises {public}: {wanted['message']}"
        )
    assert {public, instead} & set(found["error"]), (
        f"{mode}: raised {found['error'][0]}, the reference {public}: {wanted['message']}\n"
        f"{found['traceback']}"
    )
    assert found["message"].strip(), f"{mode}: {found['error'][0]} without a message"


def check_text(mode, found, wanted):
    if found != wanted:
        lines = difflib.unified_diff(
            wanted.splitlines(), found.splitlines(), "reference", "hlofront", lineterm="", n=4
        )
        raise AssertionError(f"{mode}: the text differs\n" + "\n".join(lines))


def check_count(mode, found, wanted):
    assert found["count"] <= wanted["count"], (
        f"{mode}: {found['count']} equations, the reference has {wanted['count']}\n"
        f"{found['text']}\nthe reference:\n{wanted['text']}"
    )


def check_values(mode, found, wanted, tolerance):
    assert_same_results(
        (found["structure"], found["leaves"]),
        (wanted["structure"], wanted["leaves"]),
        lambda mine, theirs, where: assert_close(mine, theirs, tolerance, where=where),
        mode=mode,
    )


def _brief(description):
    if "text" in description:
        return description["text"][:400]
    return f"{description['structure']} {[leaf[:2] for leaf in description['leaves']]}"
