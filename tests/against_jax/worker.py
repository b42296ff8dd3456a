"""The other side: runs corpora under the real jax and answers over pipes, in a process of its own.

Each message, both ways, is eight bytes of length (little-endian) and a pickle of that length.
"""

import os
import pathlib
import pickle
import sys
import traceback

# What jax or XLA print must not get between the messages.
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
questions = sys.stdin.buffer
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from tests.against_jax import describe, memory  # noqa: E402
from tests.against_jax.fuzz import running  # noqa: E402
from tests.numpy import catalogue_runner  # noqa: E402
from tests.systematic import splits, trials  # noqa: E402

# Each is asked with a file's name and {name of a question: what it needs}: {name: answer}.
KINDS = {
    "version": lambda jax, *_: jax.__version__,
    "corpus": describe.describe_some,
    "catalogue": catalogue_runner.outcomes,
    "wrong": catalogue_runner.outcomes_of_wrong,
    "samples": trials.answer_for_reference,
    "splits": splits.answer_for_reference,
    "fuzz": running.answers,
    "memory": lambda _, questions, jax, *__: {"temporaries": memory.temporaries(jax)},
}


def answer(question):
    kind, *arguments = question
    try:
        return ("ok", KINDS[kind](*arguments, jax, jnp, lax))
    except Exception:
        return ("failed", traceback.format_exc())


def main():
    while len(head := questions.read(8)) == 8:
        question = pickle.loads(questions.read(int.from_bytes(head, "little")))
        data = pickle.dumps(answer(question), protocol=5)
        answers.write(len(data).to_bytes(8, "little") + data)
        answers.flush()


main()
