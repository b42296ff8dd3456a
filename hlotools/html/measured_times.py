"""Measured times as a metric of a page, next to the costs."""

from collections.abc import Mapping

from hlotools.html.page_model import ProgramData


def add_measured(
    data: ProgramData,
    operations: Mapping[str, float],
    lines: Mapping[tuple[str, int], float],
    total: float,
) -> None:
    """Add measured times to the data of a page that has costs, as its first metric.

    Args:
      data: the data of the page.
      operations: the seconds of operations, by name; a loop's include those of its body.
      lines: the seconds of source lines, by file and number.
      total: the seconds of the program.
    """
    values = [operations.get(name) for name in data.names]
    rounded = [None if value is None else float(f"{value:.4g}") for value in values]
    others = len(data.metrics)
    data.metric("measured", "measured time", rounded, total)
    data.metrics.insert(0, data.metrics.pop())
    waiting = {
        (data.files.number(file, [line]), line): seconds for (file, line), seconds in lines.items()
    }
    for listed in data.lines:
        file, line, figures = listed
        figures.insert(0, waiting.pop((file, line), 0.0))
    data.lines += [
        [file, line, [seconds, *[0] * others]] for (file, line), seconds in waiting.items()
    ]
