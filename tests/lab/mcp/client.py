"""`percept mcp` called by a real client, the official SDK's: every tool is listed and called, alone and beside an agent.

usage: client.py [TEST…]     PERCEPT_PROGRAM names the program; run with the Python of requirements.txt
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PROGRAM = os.environ.get("PERCEPT_PROGRAM", str(ROOT / "target/debug/percept"))
NOW_MS = int(time.time() * 1000)
HOUR_MS = 3_600_000

# No model and no device: what is tested is the protocol.
CONFIG = """
[models]
yamnet = false
[clip]
model = ""
[microphone]
enabled = false
[camera]
enabled = false
[gps]
enabled = false
[bluetooth]
enabled = false
"""

READ_ONLY = {
    "search_episodes": False,
    "recall": True,
    "facts": True,
    "context": True,
    "meet_person": False,
    "capture_moment": False,
    "ingest_episode": False,
}


class Failed(Exception):
    pass


def check(is_so, sentence):
    if not is_so:
        raise Failed(sentence)


class Home:
    """A config and a data directory."""

    def __init__(self, folder):
        self.config = Path(folder) / "percept.toml"
        self.data = Path(folder) / "data"
        self.config.write_text(CONFIG)

    def words(self, *words):
        return ["--config", str(self.config), "--data-dir", str(self.data), *words]

    def client(self, mode="auto"):
        environment = {**os.environ, "PERCEPT_LOG": "warn"}
        return Client(StdioServerParameters(command=PROGRAM, args=self.words("mcp"), env=environment), mode=mode)

    def rows(self, *words):
        done = subprocess.run([PROGRAM, *self.words("--format", "jsonl", *words)], capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


async def call(client, tool, **arguments):
    """The tool's object; what it says as text must be the same."""
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text
    check(not result.is_error, f"{tool}: {text}")
    check(json.loads(text) == result.structured_content, f"{tool}: text and structure differ")
    return result.structured_content


async def refused(client, tool, **arguments):
    """The sentence of a tool that could not do it."""
    result = await client.call_tool(tool, arguments)
    check(result.is_error, f"{tool} {arguments} was not refused: {result}")
    return result.content[0].text


async def check_tools(client):
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    hints = {name: tool.annotations.read_only_hint for name, tool in listed.items()}
    check(hints == READ_ONLY, f"tools and hints: {hints}")
    for name, tool in listed.items():
        check(tool.description and tool.input_schema["type"] == "object", f"{name} has no words or no schema")
    return listed


async def use_every_tool(client):
    """Meets, notes, and finds it all again."""
    note = {
        "id": "n1", "tool_name": "note", "content": "The spare key hangs behind the blue door", "timestamp": NOW_MS - HOUR_MS,
        "facts": [{"subject": "spare key", "subject_type": "object", "relation": "located_at", "object": "blue door",
                   "object_type": "location", "valid_from": NOW_MS - HOUR_MS}],
    }
    first = await call(client, "ingest_episode", **note)
    again = await call(client, "ingest_episode", **note)
    check((first["outcome"], again["outcome"]) == ("new", "known"), f"ingested: {first}, {again}")
    check(first["id"] == again["id"], "the same note has two ids")

    met = await call(client, "meet_person", name="Zoë", transcript="see you at the harbour")
    check(met["modality"] == "social" and met["content"].startswith("Met Zoë"), f"met: {met}")
    moment = await call(client, "capture_moment", note="rain at last")
    check("rain at last" in moment["content"] or moment["modality"] != "text", f"captured: {moment}")

    found = await call(client, "search_episodes", text="spare key", peek=True)
    check([row["id"] for row in found["episodes"]][:1] == [first["id"]], f"searched: {found}")
    social = await call(client, "search_episodes", modality=["social"], since="1h", limit=5)
    check([row["id"] for row in social["episodes"]] == [met["id"]], f"filtered: {social}")
    recalled = await call(client, "recall", text="Zoë")
    check(met["id"] in [row["id"] for row in recalled["episodes"]], f"recalled: {recalled}")
    facts = await call(client, "facts", entity="spare key")
    check([fact["object"] for fact in facts["facts"]] == ["blue door"], f"facts: {facts}")
    before = await call(client, "facts", entity="spare key", as_of="2h")
    check(before["facts"] == [], f"facts before they held: {before}")
    context = await call(client, "context", tokens=300)
    check([person["name"] for person in context["people"]] == ["Zoë"], f"context: {context}")
    check(len(json.dumps(context, ensure_ascii=False, separators=(",", ":")).encode()) <= 1200, "context is over its budget")


async def use_wrongly(client):
    cases = [
        ("ingest_episode", {"tool_name": "note", "content": "x", "timestamp": -1}, "before 1970"),
        ("ingest_episode", {"tool_name": "note", "content": "x", "timestamp": NOW_MS, "importence": 3}, 'did you mean "importance"'),
        ("ingest_episode", {"tool_name": "note", "content": "x", "timestamp": NOW_MS, "modality": "smell"}, "known are visual"),
        ("search_episodes", {}, "nothing to search for"),
        ("search_episodes", {"text": "x", "modality": ["smell"]}, "known are visual"),
        ("search_episodes", {"text": "x", "since": "soon"}, "is not a time"),
        ("recall", {}, "missing field `text`"),
        ("meet_person", {"name": "  "}, "empty"),
    ]
    for tool, arguments, expected in cases:
        sentence = await refused(client, tool, **arguments)
        check(expected in sentence, f"{tool} {arguments}: {sentence!r} does not say {expected!r}")


def every_tool_is_listed_and_called_without_an_agent():
    for mode in ("auto", "legacy"):
        with tempfile.TemporaryDirectory(prefix="percept-mcp-") as folder:
            home = Home(folder)

            async def talk():
                async with home.client(mode) as client:
                    check(client.server_info.name == "percept", f"the server calls itself {client.server_info}")
                    await check_tools(client)
                    sentence = await refused(client, "context")
                    check("nothing has been recorded" in sentence, sentence)
                    await use_every_tool(client)
                    await use_wrongly(client)

            asyncio.run(talk())
            check(len(home.rows("episodes")) == 3, f"the store holds {home.rows('episodes')}")


def a_running_agent_stays_the_only_writer():
    with tempfile.TemporaryDirectory(prefix="percept-mcp-") as folder:
        home = Home(folder)
        agent = subprocess.Popen([PROGRAM, *home.words("run")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 60
            while subprocess.run([PROGRAM, *home.words("status")], capture_output=True).returncode != 0:
                check(agent.poll() is None and time.monotonic() < end, "the agent did not start")
                time.sleep(0.2)

            async def talk():
                async with home.client() as client, home.client() as other:
                    await use_every_tool(client)
                    await use_wrongly(client)
                    notes = [
                        call(one, "ingest_episode", tool_name="note", content=f"note {number}", timestamp=NOW_MS)
                        for number in range(40)
                        for one in (client, other)
                    ]
                    outcomes = sorted(note["outcome"] for note in await asyncio.gather(*notes))
                    check(outcomes == ["known"] * 40 + ["new"] * 40, f"two clients at once: {outcomes}")

            asyncio.run(talk())
            check(len(home.rows("episodes", "--limit", "100")) == 43, "what was answered is not all committed")
        finally:
            agent.send_signal(signal.SIGTERM)
            check(agent.wait(timeout=60) == 0, "the agent did not end well")


def standard_output_is_the_protocol_and_nothing_else():
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
             "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "lab", "version": "1"}}}
    lines = [json.dumps(hello), '{"jsonrpc": "2.0", "method": "notifications/initialized"}', "this is no JSON",
             '{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}']
    with tempfile.TemporaryDirectory(prefix="percept-mcp-") as folder:
        # A file as standard input ends at once; a pipe as it comes.
        for text in ("\n".join(lines) + "\n", ""):
            environment = {**os.environ, "PERCEPT_LOG": "trace"}
            done = subprocess.run([PROGRAM, *Home(folder).words("mcp")], input=text, capture_output=True, text=True, timeout=60, env=environment)
            check(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}")
            answers = [json.loads(line) for line in done.stdout.splitlines()]
            ids = {answer.get("id") for answer in answers}
            check(not text or {1, 2} <= ids, f"answered {ids}")


TESTS = [every_tool_is_listed_and_called_without_an_agent, a_running_agent_stays_the_only_writer, standard_output_is_the_protocol_and_nothing_else]


def main(names):
    failed = 0
    for test in TESTS:
        if names and test.__name__ not in names:
            continue
        try:
            test()
            print(f"  passed  {test.__name__}", flush=True)
        except* Failed as failures:
            failed += 1
            print(f"  FAILED  {test.__name__}: {flat(failures)}", flush=True)
    return 1 if failed else 0


def flat(failures):
    """The sentences of nested groups, which anyio makes."""
    return "; ".join(flat(one) if isinstance(one, BaseExceptionGroup) else str(one) for one in failures.exceptions)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
