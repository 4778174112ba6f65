"""The JSON schema of the protocol holds for the messages between peers and trainers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import wait_until
from swarm import LocalSwarm

from mingle.endpoint import UnixEndpoint
from mingle.http_call import Answer, call

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "trainer-protocol.schema.json").read_text())
INTRODUCTION = {"protocol": 1, "name": "x", "layout": [["w", [2]]], "initial": "offer"}


def check(value: Any, what: str) -> None:
    """Raises where `value` does not match the definition `what` of the schema."""
    jsonschema.validate(value, {"$ref": f"#/$defs/{what}"} | {"$defs": SCHEMA["$defs"]}, cls=jsonschema.Draft202012Validator)


def test_the_examples_of_the_page_are_valid() -> None:
    page = (DOCS / "trainer-protocol.md").read_text()
    access, asked, answered = (json.loads(example) for example in re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    check(access, "access")
    check(asked, "attach")
    check(answered, "attached")
    check({"metrics": {"accuracy": [0.972, 360], "loss": [0.09, 360]}}, "evaluation")


@pytest.mark.parametrize(
    "wrong", [{"protocol": 2}, {"layout": []}, {"layout": [["w"]]}, {"layout": [["w", [-1]]]}, {"initial": "give"}, {"name": ""}]
)
def test_what_is_no_introduction_is_invalid(wrong: dict[str, Any]) -> None:
    check(INTRODUCTION, "attach")
    with pytest.raises(jsonschema.ValidationError):
        check(INTRODUCTION | wrong, "attach")


@pytest.mark.swarm
@pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle")
def test_a_peer_answers_as_the_schema_says(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, 2, rounds=10, options=("--trainer-tcp", "127.0.0.1:0")) as swarm:
        swarm.start_peer(0)
        socket, access = swarm.home(0) / "mingle.sock", swarm.home(0) / "trainer-tcp.json"
        wait_until(lambda: socket.exists() and access.exists(), "the socket and the token are there", 60.0)

        def ask(method: str, path: str, body: Any = None, **headers: str) -> tuple[Answer, Any]:
            content = None if body is None else json.dumps(body).encode()
            answer = call(UnixEndpoint(str(socket)), method, f"/v1/trainer{path}", body=content, headers=headers)
            return answer, json.loads(answer.body) if answer.body else None

        check(json.loads(access.read_text()), "access")
        check(ask("GET", "")[1], "status")
        refused, error = ask("POST", "/attach", INTRODUCTION | {"layout": []})
        assert refused.status == 400
        check(error, "error")
        attached = ask("POST", "/attach", INTRODUCTION)[1]
        check(attached, "attached")
        waiting, said = ask("GET", "/order?wait=0", **{"Mingle-Session": attached["session"]})
        assert waiting.status == 202
        check(said, "waiting")
        check(ask("GET", "")[1], "status")
