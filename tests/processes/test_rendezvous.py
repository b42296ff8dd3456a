"""The processes of a group that does not come together are told who is missing, or does not fit."""

import concurrent.futures
import dataclasses
import json
import socket
import threading
import time

import pytest

from hlofront.cli.run import free_port
from hlofront.pjrt.rendezvous import PROTOCOL, Participant, Rendezvous, _listed, register


def participant(number, count=3, seconds=20.0, **changes):
    changes = {"pid": 100 + number, **changes}
    return dataclasses.replace(Participant.of_this_process(number, count, seconds), **changes)


class Outcomes:
    """What became of processes that register at one address, each in a thread."""

    def __init__(self, *participants, count=3, seconds=20.0):
        self.address = f"127.0.0.1:{free_port()}"
        self.errors = {}
        self.rendezvous = Rendezvous(self.address, participant(0, count, seconds))
        threads = [
            threading.Thread(target=self._register, args=(i, one))
            for i, one in enumerate((participant(0, count, seconds), *participants))
        ]
        started = time.monotonic()
        for thread in reversed(threads):  # Process 0 is the last.
            thread.start()
            time.sleep(0.05)
        for thread in threads:
            thread.join()
        self.rendezvous.join()
        self.seconds = time.monotonic() - started

    def _register(self, position, one):
        try:
            register(self.address, one)
        except RuntimeError as error:
            self.errors[position] = str(error)


def is_free(address):
    """Return whether a server can listen at an address."""
    host, port = address.split(":")
    try:
        socket.create_server((host, int(port))).close()
    except OSError:
        return False
    return True


def test_a_group_that_comes_together_frees_the_address_for_the_service():
    outcomes = Outcomes(participant(2), participant(1))
    assert outcomes.errors == {}
    assert is_free(outcomes.address)


def test_missing_processes_are_named_to_all_when_the_first_has_no_more_time():
    outcomes = Outcomes(participant(2, 8, seconds=1.0), count=8)
    assert sorted(outcomes.errors) == [0, 1]
    for error in outcomes.errors.values():
        assert error.startswith("processes 1, 3 to 7 of 8 have not come.")


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ([participant(1, pid=1), participant(1, pid=2)], "two processes have the number 1: pid "),
        ([participant(0, host="other")], "two processes have the number 0: pid "),
        ([participant(1, 4)], "has num_processes 4, and process 0 (pid "),
        ([participant(1, jaxlib="0.11.2")], "has jaxlib 0.11.2, and process 0 (pid "),
        ([participant(1, hlofront="0.0.9")], "has hlofront 0.0.9, and process 0 (pid "),
    ],
)
def test_processes_that_do_not_fit_are_named_to_all_at_once(others, text):
    outcomes = Outcomes(*others)
    assert len(outcomes.errors) == len(others) + 1
    assert all(text in error for error in outcomes.errors.values())
    assert outcomes.seconds < 10


def test_a_process_that_ends_and_starts_again_is_counted_once():
    address = f"127.0.0.1:{free_port()}"
    rendezvous = Rendezvous(address, participant(0, 2))
    host, port = address.split(":")
    with socket.create_connection((host, int(port))) as connection:
        record = json.dumps(dataclasses.asdict(participant(1, 2)))
        connection.sendall(PROTOCOL + record.encode() + b"\n")
    time.sleep(0.2)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        answers = threads.map(lambda n: register(address, participant(n, 2)), (0, 1))
        assert list(answers) == [None, None]
    rendezvous.join()
    assert is_free(address)


def message(**fields):
    record = dataclasses.asdict(participant(1, 2)) | fields
    return PROTOCOL + json.dumps(record).encode() + b"\n"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * 100_000,
        PROTOCOL + b"{]\n",
        PROTOCOL + b"[" * 10_000 + b"\n",
        PROTOCOL + b"\xff\n",
        message(process_id=[]),
        message(process_id=7),
        message(process_id=-1),
        message(pid=None),
        message(seconds="x"),
        message(seconds=float("nan")),
        message(seconds=-1),
        message(host="\x1b]0;owned\x07", jaxlib="0"),
        message(other=1),
    ],
    ids=range(15),
)
def test_strangers_do_not_disturb(said):
    address = f"127.0.0.1:{free_port()}"
    rendezvous = Rendezvous(address, participant(0, 2))
    host, port = address.split(":")
    with socket.create_connection((host, int(port))) as stranger:
        try:
            stranger.sendall(said)
        except ConnectionError:
            pass
        with concurrent.futures.ThreadPoolExecutor() as threads:
            answers = threads.map(lambda n: register(address, participant(n, 2)), (0, 1))
            assert list(answers) == [None, None]
    rendezvous.join()
    assert is_free(address)


@pytest.mark.parametrize("said", [b"", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"])
def test_another_answer_is_an_error(said):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(100_000)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        wanted = "may have begun without this process" if said else "has ended before"
        with pytest.raises(RuntimeError, match=wanted):
            register(address, participant(1))
        thread.join()


def test_numbers_of_processes_in_words():
    assert _listed([3]) == "process 3"
    assert _listed([1, 2, 5]) == "processes 1 to 2, 5"
    assert _listed(range(0, 60, 2)).endswith("18, 20 more ranges")
