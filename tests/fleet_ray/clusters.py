"""A Ray cluster of three nodes on this machine, and fleets that run on it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray._private import services
from ray.cluster_utils import Cluster

from dragoman.testing import Loopback
from dragoman.testing.script import Script
from program import heed_signals

KEY = "sk-test-ray-0123456789abcdef"
MODEL = "anthropic/claude-opus-5"
STEPS = (
    'call: run_shell {"command": "echo %s > made.txt; sleep SECONDS"}',
    'call: run_shell {"command": "cat made.txt", "writes": true}',
    "text: done with %s",
)


def answer(seconds: float) -> Callable[[Any], Any]:
    """A model that works on many tasks at once: each request names its own as `task=NAME`."""

    def choose(request: Any) -> Any:
        messages = request.body["messages"]
        name = json.dumps(messages).partition("task=")[2].partition(" ")[0]
        step = STEPS[min(sum(message["role"] == "assistant" for message in messages), len(STEPS) - 1)]
        return Script.parse(step.replace("%s", name).replace("SECONDS", str(seconds))).answers[0]

    return choose


class RayPlace:
    """A folder of the user's, a model and a cluster whose nodes have the key in their environment."""

    def __init__(self, folder: Path, loopback: Loopback) -> None:
        self.folder, self.loopback = folder, loopback
        (folder / "home").mkdir()
        (folder / "repo").mkdir()
        (folder / "repo" / "a.txt").write_text("a\n")
        (folder / "repo" / "elsewhere").symlink_to("/etc/hostname")
        self.env = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "DRAGOMAN_HOME": str(folder / "home" / "dragoman"),
            "LANG": "C.UTF-8",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": loopback.url,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_failure_threshold": "3",
        }
        os.environ.update(self.env)
        own = own_address()
        services.node_ip_address_from_perspective = lambda address="": own
        self.client_port = free_port()
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 80_000_000, "ray_client_server_port": self.client_port}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.add_node() for _ in range(3)]
        self.logs = Path(self.cluster.head_node.get_session_dir_path())

    def add_node(self) -> Any:
        """A node has the environment of whoever starts it."""
        os.environ.update(self.env)
        return self.cluster.add_node(num_cpus=1, object_store_memory=80_000_000)

    def close(self) -> None:
        self.cluster.shutdown()

    # --- fleets

    def write_tasks(self, name: str, count: int, **fields: Any) -> None:
        tasks = [
            {"id": f"{name}-{number}", "prompt": f"task={name}-{number} . Do it.", "workspace": str(self.folder / "repo")}
            | {"check": f"grep -qx {name}-{number} made.txt && test -L elsewhere && test -e a.txt"}
            | fields
            for number in range(count)
        ]
        (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))

    def start(self, *words: str, on: str = "ray", env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        place = ["--on", on] if on else []
        command = [sys.executable, "-m", "dragoman", "fleet", *words, *place]
        env = self.env | {"RAY_ADDRESS": self.cluster.address} | (env or {})
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True, preexec_fn=heed_signals
        )

    def run(self, *words: str, on: str = "ray") -> str:
        return ended(self.start(*words, on=on))

    def files(self, name: str) -> Path:
        return self.folder / "fleet" / name

    def results(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.files(name) / "results.jsonl").read_text().splitlines()]

    def journal(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.files(name) / "journal.jsonl").read_text().splitlines()]

    def wait_for_ends(self, name: str, count: int) -> None:
        """Wait until so many attempts have ended."""
        path = self.files(name) / "journal.jsonl"
        until_s = time.monotonic() + 120
        while not path.exists() or sum(line.startswith('{"e":"end"') for line in path.read_text().splitlines()) < count:
            assert time.monotonic() < until_s, "nothing ends"
            time.sleep(0.05)

    def wait_for_spending(self, name: str) -> None:
        """Wait until an attempt that is under way is known to have spent something."""
        until_s = time.monotonic() + 120
        while not any(
            '"usd"' in each.read_text() and not each.with_name("result.json").exists() for each in self.files(name).rglob("spent.jsonl")
        ):
            assert time.monotonic() < until_s, "nothing is spent"
            time.sleep(0.05)

    def in_cluster(self, code: str) -> str:
        """Run some Python as another driver of the cluster."""
        code = f"import ray; ray.init(address={self.cluster.address!r}, namespace='dragoman', log_to_driver=False)\n{code}"
        done = subprocess.run([sys.executable, "-c", code], env=self.env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2_000:]
        return done.stdout


def own_address() -> str:
    """The address of this machine, as Ray finds it: by the way to one on the internet, which no test asks for in its own process."""
    code = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('192.0.2.1', 9)); print(s.getsockname()[0])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def ended(process: subprocess.Popen[str], expected: int = 0) -> str:
    """What it has printed, once it is over."""
    printed, complained = process.communicate(timeout=600)
    assert process.returncode == expected, printed[-3_000:] + complained[-3_000:]
    return printed


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL, to the supervisor alone."""
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


@contextmanager
def ray_place(folder: Path, seconds: float) -> Iterator[RayPlace]:
    before = dict(os.environ)
    with Loopback(answer(seconds)) as loopback:
        place = RayPlace(folder, loopback)
        try:
            yield place
        finally:
            place.close()
            os.environ.clear()
            os.environ.update(before)
