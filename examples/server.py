"""A server that starts from a bundle: it needs only the model's file, not its code, and no MLIR.

    python examples/server.py build model.hlob    # where the model is trained
    python examples/server.py serve model.hlob    # where requests arrive, as lines of JSON

The model has two sizes: a single request is answered immediately, waiting requests as a batch.
"""

import json
import sys
import time

START = time.perf_counter()

import numpy as np

import hlofront as jax
from hlofront import bundle

SMALL, LARGE, WIDTH = 1, 16, 64


def build(path):
    """Write the model with its weights, compiled for both sizes, to a file."""
    keys = jax.random.split(jax.random.key(0), 3)
    weights = [jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5 for key in keys]

    @jax.jit
    def model(x):
        for w in weights:
            x = jax.numpy.tanh(x @ w)
        return x.mean(-1), x.argmax(-1)

    sizes = [jax.ShapeDtypeStruct((rows, WIDTH), "float32") for rows in (SMALL, LARGE)]
    bundle.save(path, model, *map(bundle.arguments, sizes))
    print(bundle.ls(path))


def answers(model, requests):
    """Answer requests with the program of the smallest size that holds them all."""
    x = np.zeros((SMALL if len(requests) <= SMALL else LARGE, WIDTH), np.float32)
    for row, request in enumerate(requests):
        x[row] = request["x"]
    means, classes = map(np.asarray, model(x))
    for row, request in enumerate(requests):
        yield {"id": request["id"], "mean": float(means[row]), "class": int(classes[row])}


def serve(path):
    """Answer each line of requests, [{"id": 1, "x": [...]}], with a line for each request."""
    model = bundle.load(path, trust=True)  # The file is our own.
    for number, line in enumerate(sys.stdin):
        requests = json.loads(line)
        for start in range(0, len(requests), LARGE):
            for answer in answers(model, requests[start : start + LARGE]):
                print(json.dumps(answer), flush=True)
        if number == 0:
            seconds = time.perf_counter() - START
            print(f"first answers after {seconds:.2f} s", file=sys.stderr)


if __name__ == "__main__":
    {"build": build, "serve": serve}[sys.argv[1]](sys.argv[2])
