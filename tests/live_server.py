"""A server in a process of its own, for tests that speak to it as strangers would."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

from helpers import REPOSITORY

ADDRESS = re.compile(r"http://\S+/")
START_SECONDS = 180  # a busy machine takes long to import everything
SCRIPT = """
import json, logging, sys
from pathlib import Path
logging.basicConfig(level=logging.DEBUG)
from latem.datasets import read_folder
from latem.server.run import serve
from latem.server.settings import Limits, Settings
from latem.server.shelf import Source
given = json.loads(sys.argv[1])
dataset = read_folder(given["folder"]) if given["folder"] else None
settings = Settings(port=0, limits=Limits(**given["limits"]), **given["settings"])
serve(given["models"], Source(dataset), settings, lambda address: print(address, flush=True))
"""


def serve_command(*arguments):
    """The command `latem serve`, as a list of words."""
    return [sys.executable, "-m", "latem", "serve", *map(str, arguments)]


def serve_script(models, folder=None, limits=None, **settings):
    """A command that serves with limits of one's own, and logs everything."""
    given = {
        "models": {name: str(path) for name, path in models.items()},
        "folder": None if folder is None else str(folder),
        "limits": limits or {},
        "settings": settings,
    }
    return [sys.executable, "-c", SCRIPT, json.dumps(given)]


def environment(**more):
    """The environment of a server: this repository's code, and no token from outside."""
    found = {key: value for key, value in os.environ.items() if key != "LATEM_TOKEN"}
    return {**found, "PYTHONPATH": str(REPOSITORY / "src"), **more}


class LiveServer:
    """A running server.

    Parameters
    ----------
    command : list of str
        Prints the address when the server can be asked.
    env : dict, optional

    Attributes
    ----------
    address : str
        Such as http://127.0.0.1:43210/
    process : Popen
    lines : list of str
        All that it has printed.
    """

    def __init__(self, command, env=None):
        self.lines = []
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment() if env is None else env,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.address = self._wait()
        except BaseException:
            self.stop()
            raise
        parts = urlsplit(self.address)
        self.host, self.port = parts.hostname, parts.port

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def _wait(self):
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            found = ADDRESS.search("".join(self.lines))
            if found:
                return found.group()
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError("The server did not start:\n" + "".join(self.lines))

    def stop(self):
        """End the process."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(5)
        self.process.stdout.close()

    def connection(self, seconds=60):
        """A connection to it."""
        return http.client.HTTPConnection(self.host, self.port, timeout=seconds)

    def ask(self, method, path, body=None, headers=None, seconds=60):
        """Status, headers and content of an answer; a dict is sent as JSON."""
        headers = dict(headers or {})
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = self.connection(seconds)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def metric(self, name, headers=None):
        """The sum of a measure over its labels."""
        _, _, text = self.ask("GET", "/metrics", headers=headers)
        pattern = rf"^{re.escape(name)}(?:{{.*}})? (\S+)$"
        return sum(float(value) for value in re.findall(pattern, text.decode(), re.MULTILINE))

    def memory(self, headers=None):
        """Bytes of memory that the process has."""
        return self.metric("process_resident_memory_bytes", headers)
