"""What pyproject.toml cannot say: stubs and a line of code in wheels, and links for PyPI.

The line, in hlofront_as_jax.pth next to the packages, acts at the start where HLOFRONT_AS_JAX=1.
The stubs are written next to the modules: for an editable installation, those of this checkout.
"""

import pathlib
import re
import subprocess
import sys
import tomllib

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


def readme() -> str:
    """Return the README, whose relative links and pictures lead to the repository on the web."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project["urls"]["Source"]
    raw = source.replace("//github.com/", "//raw.githubusercontent.com/") + "/main/"
    text = (HERE / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\]\(|<img [^>]*?src=\")(?!\w+:|#)", rf"\1{raw}", text)
    return re.sub(r"(?<!\!)(\[[^]]*\]\()(?!\w+:|#|/)", rf"\1{source}/blob/main/", text)


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": BuildWithStubs},
        long_description=readme(),
        long_description_content_type="text/markdown",
    )
