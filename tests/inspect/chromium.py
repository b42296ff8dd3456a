"""A headless Chromium to try pages in, driven through a pipe by the standard library alone."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
_LONGEST_WAIT = 60.0
# The browser reads file 3 and writes file 4.
_START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find():
    """The path of a Chromium, or None."""
    given = os.environ.get("HLOFRONT_CHROMIUM")
    return given or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """A browser without a window; as a context manager it ends with the block."""

    def __init__(self, path, folder):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        arguments = [
            path,
            "--headless",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _START, str(to_browser), str(from_browser), *arguments],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._left = b""
        self._count = 0
        self.events = []
        self.session = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self._out)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def call(self, method, session=None, **params):
        """What the browser answers to one command; what happens meanwhile goes to `events`."""
        self._count += 1
        number = self._count
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer.get("result", {})

    def _next(self, wait=_LONGEST_WAIT):
        end = time.monotonic() + wait
        while b"\0" not in self._left:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise AssertionError("the browser has ended")
            self._left += part
        text, _, self._left = self._left.partition(b"\0")
        answer = json.loads(text)
        if "id" not in answer:
            self.events.append(answer)
        return answer

    def page(self, url, width=1500, height=950, dark=False):
        return Page(self, url, width, height, dark)


class Page:
    """One page, loaded; `problems` are errors, warnings and requests that it made."""

    def __init__(self, browser, url, width, height, dark):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.target, self.session = target, attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        began = time.monotonic()
        self.call("Page.navigate", url=url)
        end = began + _LONGEST_WAIT
        while self.run("document.readyState") != "complete" or self.run("location.href") != url:
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.01)
        self.seconds = time.monotonic() - began
        self.url = url

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def run(self, code):
        """The value of an expression of JavaScript; promises are waited for."""
        found = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise AssertionError(f"{code}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def middle_of(self, selector):
        """The middle of the first element in sight that fits."""
        box = self.run(f"""(() => {{
            const found = document.querySelector({json.dumps(selector)});
            if (!found) return null;
            found.scrollIntoView({{block: 'nearest', inline: 'nearest'}});
            const box = found.getBoundingClientRect();
            const [width, height] = [Math.min(box.width, 120), Math.min(box.height, 40)];
            return [box.left + width / 2, box.top + height / 2];
        }})()""")
        assert box, f"nothing fits {selector}"
        return box

    def move(self, selector):
        x, y = self.middle_of(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.middle_of(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, text=None):
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39,
                 "ArrowLeft": 37, " ": 32}  # fmt: skip
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else None)
        extra = {"text": text} if text else {}
        code = codes.get(key, ord(key[0].upper()))
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **extra
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def until(self, condition, wait=10.0):
        """Wait until an expression holds."""
        end = time.monotonic() + wait
        while not self.run(condition):
            assert time.monotonic() < end, f"never holds: {condition}"
            time.sleep(0.02)

    @property
    def problems(self):
        """What went wrong or out: errors, what the policy refused, requests but for the page."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params = event["params"]
            if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                found.append(json.dumps(params)[:500])
            elif event["method"] == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif event["method"] == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if url.partition("#")[0] != self.url:
                    found.append(f"request: {url}")
        return found

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
