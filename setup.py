"""What pyproject.toml cannot say: a wheel holds a line of code that Python runs when it starts.

The line, in hlofront_as_jax.pth beside the packages, acts where HLOFRONT_AS_JAX=1.
"""

import pathlib

from setuptools import setup
from setuptools.command.build_py import build_py

STARTUP = 'import os; os.environ.get("HLOFRONT_AS_JAX") == "1" and __import__("hlofront.as_jax")\n'


class BuildWithStartup(build_py):
    def run(self):
        super().run()
        pathlib.Path(self.build_lib, "hlofront_as_jax.pth").write_text(STARTUP)


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildWithStartup})
