"""pytensor: graphs compiled in its JAX mode: gradients, scans, shared variables, random numbers."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.random.utils import RandomStream

pytensor.config.floatX = "float64"
x = pt.tensor("x", shape=(2, 3), dtype="float64")
y = pt.tensor("y", shape=(3,), dtype="float64")
values = np.arange(6.0).reshape(2, 3) / 5, np.array([0.3, -1.0, 2.0])


def show(name, inputs, outputs, *arguments):
    function = pytensor.function(inputs, outputs, mode="JAX")
    results = function(*arguments)
    results = results if isinstance(results, list) else [results]
    print(name, *[np.asarray(result) for result in results])


show("product", [x, y], pt.dot(pt.tanh(x), y), *values)
loss = pt.sum(pt.sigmoid(pt.dot(x, y)) ** 2)
show("gradient", [x, y], pytensor.grad(loss, [x, y]), *values)
show("softmax", [x], [pt.special.softmax(x, axis=-1), pt.special.log_softmax(x, axis=0)], values[0])
show("reductions", [x], [x.max(axis=0), x.argmin(axis=1), x.std(), pt.cumsum(x, axis=1)], values[0])
show("indices", [x], [x[::-1, 1:], x[:, [0, 2]], pt.set_subtensor(x[0], 1.0)], values[0])
show("special", [y], [pt.gammaln(y + 3), pt.erf(y), pt.log1p(y**2), pt.expit(y)], values[1])
square = pt.dot(x, x.T) + pt.eye(2)
show("linear algebra", [x], [pt.linalg.cholesky(square), pt.linalg.det(square)], values[0])
show("solve", [x], pt.linalg.solve(square, x), values[0])
show("choice", [y], [pt.switch(y > 0, y, -y), pt.clip(y, -0.5, 0.5)], values[1])

start = pt.scalar("start")
powers = pytensor.scan(
    fn=lambda previous: previous * 1.5 + 0.1,
    outputs_info=start,
    n_steps=5,
    return_updates=False,
)
show("scan", [start], powers, 1.0)
sums = pytensor.scan(
    fn=lambda row, total: total + row.sum(),
    sequences=x,
    outputs_info=pt.as_tensor(np.float64(0.0)),
    return_updates=False,
)
show("scan over rows", [x], [sums, pytensor.grad(sums[-1] ** 2, x)], values[0])

total = pytensor.shared(np.zeros(3), name="total")
step = pytensor.function([y], total.sum(), updates={total: total + y}, mode="JAX")
print("updates", [float(step(values[1])) for _ in range(3)], np.asarray(total.get_value()))

weights = pytensor.shared(np.zeros(3), name="weights")
error = pt.mean((pt.dot(x, weights) - np.array([1.0, -1.0])) ** 2)
train = pytensor.function(
    [x], error, updates={weights: weights - 0.5 * pytensor.grad(error, weights)}, mode="JAX"
)
print("trained", [float(train(values[0])) for _ in range(4)])
stream = RandomStream(seed=7)
draw = pytensor.function([], [stream.normal(size=(3,)), stream.uniform(size=(2,))], mode="JAX")
drawn = draw()
print("drawn", *[np.asarray(sample).shape for sample in drawn], np.isfinite(drawn[0]).all())
