"""keras on jax: a convolutional network, fitted, evaluated, saved; custom layers and operations."""
# tolerance: 2e-3 1e-4

import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(0)
images = np.random.default_rng(0).normal(size=(32, 8, 8, 1)).astype("float32")
labels = (images.mean((1, 2, 3)) > 0).astype("int32")


class Scale(layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        return ops.tanh(x) * self.scale


model = keras.Sequential(
    [
        layers.Input((8, 8, 1)),
        layers.Conv2D(4, 3, activation="relu"),
        layers.MaxPooling2D(2),
        layers.BatchNormalization(),
        layers.Flatten(),
        Scale(),
        layers.Dropout(0.1, seed=1),
        layers.Dense(2),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(0.01),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
print("start", model.evaluate(images, labels, verbose=0))
history = model.fit(images, labels, batch_size=8, epochs=3, shuffle=False, verbose=0)
print("losses", history.history["loss"])
print("end", model.evaluate(images, labels, verbose=0))
print("predicted", model.predict(images[:2], verbose=0).tolist())
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    restored = keras.saving.load_model(path, custom_objects={"Scale": Scale})
print(
    "restored", np.allclose(restored.predict(images, verbose=0), model.predict(images, verbose=0))
)

inputs = keras.Input((6, 4))
x = layers.LSTM(5, return_sequences=True)(inputs)
x = layers.MultiHeadAttention(2, 4)(x, x)
x = layers.GRU(3)(layers.LayerNormalization()(x))
recurrent = keras.Model(inputs, layers.Dense(1)(x))
recurrent.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="mse")
sequences = np.random.default_rng(1).normal(size=(8, 6, 4)).astype("float32")
print("recurrent", recurrent.train_on_batch(sequences, np.ones((8, 1), "float32")))
print("recurrent", recurrent.train_on_batch(sequences, np.ones((8, 1), "float32")))
print("parameters", recurrent.count_params(), recurrent(sequences[:1]).shape)
print(
    "ops", ops.softmax(ops.arange(4.0)), ops.einsum("ij,kj->ik", np.eye(2), np.ones((3, 2))).sum()
)
print("scan", ops.scan(lambda c, x: (c + x, c * x), 0.0, ops.arange(4.0)))
print("while", ops.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + i), (0, 0)))
print(
    "image",
    ops.image.resize(images[:1], (4, 4)).shape,
    ops.image.rgb_to_grayscale(np.ones((1, 2, 2, 3))).sum(),
)
print("random", keras.random.normal((3,), seed=4), keras.random.randint((3,), 0, 9, seed=4))
