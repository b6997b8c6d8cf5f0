"""A headless Chromium, driven over its debugging pipe: no port, no driver program, no package.

It speaks the DevTools protocol (JSON messages, each ended by NUL) through two pipes, which the browser expects as
its files 3 and 4.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 30.0  # to wait for anything, on a busy machine
QUIET = (
    "--headless=new",
    "--no-sandbox",  # the sandbox needs rights that a container does not give; the pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
)


def browser_program() -> str | None:
    """Return the browser of this machine: $PLUMBLINE_BROWSER, or the first known one that is installed."""
    return os.environ.get("PLUMBLINE_BROWSER") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Tab:
    """One page: what it logs and asks of the network is kept, and a question waits until its answer is true."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")

    def call(self, method: str, **words: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        self._number += 1
        message = {
            "id": self._number,
            "method": method,
            "params": words,
            **({"sessionId": self._session} if self._session else {}),
        }
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._receive, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._buffer += more
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._keep(message.get("method", ""), message.get("params", {}))
        return message

    def _keep(self, event: str, words: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(words["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(words["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(words["exceptionDetails"].get("exception", words["exceptionDetails"])))
        elif event == "Runtime.consoleAPICalled" and words["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(words["args"]))

    def open(self, address: str, view: str = "last") -> None:
        """Load an address and wait until its view is drawn."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.wait(f"document.documentElement?.dataset.ready === {json.dumps(view)}")

    def ask(self, script: str) -> Any:
        """Return the value of a JavaScript expression, awaited if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + SECONDS
        while not self.ask(f"Boolean({script})"):
            if time.monotonic() > end:
                raise AssertionError(
                    f"never true: {script}; the page says {self.text()[:300]!r}; complaints {self.complaints}"
                )
            time.sleep(0.02)

    def text(self, selector: str = "main") -> str:
        """Return the text of an element as a reader sees it."""
        found = f"document.querySelector({json.dumps(selector)})"
        return str(self.ask(f"{found}?.innerText ?? {found}?.textContent ?? ''"))  # pictures have no innerText

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that a selector finds."""
        return list(self.ask(f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)"))

    def click(self, selector: str, nth: int = 0) -> None:
        """Click in the middle of the nth element, with a mouse."""
        where = f"document.querySelectorAll({json.dumps(selector)})[{nth}]"
        self.wait(where)
        self.ask(f"{where}.scrollIntoView({{block: 'center'}})")
        box = self.ask(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({where}.getClientRects()[0])")
        self.mouse(*box)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a select."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.ask(f"{found}.value = {json.dumps(value)}; {found}.dispatchEvent(new Event('change'))")

    def mouse(self, x: float, y: float) -> None:
        """Click at a place of the window."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left" if kind != "mouseMoved" else "none",
                clickCount=1,
            )

    def press(self, key: str) -> None:
        """Press and release a key."""
        letters = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27}.get(
            key, 0
        )
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **letters)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, file: Path) -> None:
        """Write what is in the window as a PNG file."""
        file.write_bytes(b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def browser_tab(program: str) -> Iterator[Tab]:
    """Start a browser with a profile of its own, and give one empty tab of it."""
    to_browser, our_end = os.pipe()
    our_start, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(prefix="plumbline-browser-", ignore_cleanup_errors=True) as profile:
        # The shell moves the two pipes to where the browser looks for them.
        line = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        flags = ["--remote-debugging-pipe", f"--user-data-dir={profile}", *QUIET]
        process = subprocess.Popen(
            ["bash", "-c", line, program, *flags],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Tab(our_end, our_start)
        finally:
            process.terminate()
            process.wait(SECONDS)
            os.close(our_end)
            os.close(our_start)
