"""What pyproject.toml cannot say: a wheel holds stubs, and a line of code that Python runs.

The line, in hlofront_as_jax.pth next to the packages, acts at the start where HLOFRONT_AS_JAX=1.
The stubs are written next to the modules: for an editable installation, those of this checkout.
"""

import pathlib
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
STARTUP = 'import os; os.environ.get("HLOFRONT_AS_JAX") == "1" and __import__("hlofront.as_jax")\n'


class BuildWithStubs(build_py):
    def run(self):
        super().run()
        pathlib.Path(self.build_lib, "hlofront_as_jax.pth").write_text(STARTUP)
        folder = HERE if self.editable_mode else pathlib.Path(self.build_lib).resolve()
        writer = HERE / "scripts" / "write_stubs.py"
        subprocess.run([sys.executable, writer, folder], check=True)


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildWithStubs})
