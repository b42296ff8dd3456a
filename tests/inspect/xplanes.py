"""Files of XLA's profiler, made of Python values: what `hlotools.profiles.xplane` reads."""

import struct


def varint(value):
    value &= 2**64 - 1
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


def message(*fields):
    """Return a message of pairs: the number of a field and an int, float, str or bytes."""
    written = b""
    for number, value in fields:
        if isinstance(value, int):
            written += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            written += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            content = value.encode() if isinstance(value, str) else value
            written += varint(number << 3 | 2) + varint(len(content)) + content
    return written


class PlaneWriter:
    """A plane to which lines of events are added."""

    def __init__(self, name):
        self.name = name
        self.events = {}
        self.stats = {}
        self.lines = []

    def stat(self, name, value):
        """Return the stat of a name; a bytes value is a text that is written as a reference."""
        number = self.stats.setdefault(name, len(self.stats) + 1)
        if isinstance(value, bytes):
            value = self.stats.setdefault(value.decode(), len(self.stats) + 1)
            return message((1, number), (7, value))
        return message((1, number), ({int: 4, float: 2, str: 5}[type(value)], value))

    def line(self, name, *events, begin=0):
        """Add a line of (name, start, end, stats); times are in nanoseconds."""
        fields = [(2, name), (3, begin)]
        for title, start, end, stats in events:
            number = self.events.setdefault(title, len(self.events) + 1)
            listed = [(4, self.stat(*item)) for item in stats.items()]
            times = [(2, start * 1000), (3, (end - start) * 1000)]
            fields.append((4, message((1, number), *times, *listed)))
        self.lines.append(message(*fields))
        return self

    def bytes(self):
        metadata = [
            (kind, message((1, number), (2, message((1, number), (2, name)))))
            for kind, names in ((4, self.events), (5, self.stats))
            for name, number in names.items()
        ]
        return message((2, self.name), *((3, line) for line in self.lines), *metadata)


def xspace(*planes):
    """Return the bytes of a file with these planes."""
    return message(*((1, plane.bytes()) for plane in planes), (4, "host"))
