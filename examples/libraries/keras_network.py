"""A convolutional network of keras. It is a program for jax, which hlofront runs:

python -m hlofront as-jax examples/libraries/keras_network.py
"""

import os
import time

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers

started = time.perf_counter()
keras.utils.set_random_seed(0)
images = np.random.default_rng(0).normal(size=(512, 8, 8, 1)).astype("float32")
labels = (images[:, :4].mean((1, 2, 3)) > images[:, 4:].mean((1, 2, 3))).astype("int32")

model = keras.Sequential(
    [
        layers.Input((8, 8, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.Flatten(),
        layers.Dropout(0.1, seed=1),
        layers.Dense(2),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)


class StepTimes(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.ends = []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())


steps = StepTimes()
history = model.fit(images, labels, batch_size=64, epochs=10, verbose=0, callbacks=[steps])
first, *_, last = history.history["loss"]
print(f"first loss {first:.3f}")
print(f"last loss {last:.3f}")
per_step = float(np.median(np.diff(steps.ends[1:])))
print(f"time to first result {steps.ends[0] - started:.2f} s, per step {per_step * 1e3:.1f} ms")
