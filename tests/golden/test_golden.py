"""Records written by any release of wire version 1 are read, and written again byte for byte (P10)."""

import json
from pathlib import Path

import pytest

from broker.core import answers, dispositions, models, records, wire
from broker.core.digest import action_digest, canonical_json
from broker.core.ids import bits_of, interrupt_id, new_run_id, session_hash
from broker.core.limits import JSON
from broker.core.schema import schemas
from broker.core.shape import Model

FOLDER = Path(__file__).parent / "v1"
RECORDS = sorted(path.stem for path in FOLDER.glob("*.json") if '"hex"' in path.read_text())
EXACT = [name for name in RECORDS if name != "compressed"]


def load(name: str) -> JSON:
    return json.loads((FOLDER / f"{name}.json").read_text())


def model_of(vector: JSON) -> type[Model]:
    for module in (answers, dispositions, models, records):
        if hasattr(module, vector["type"]):
            found: type[Model] = getattr(module, vector["type"])
            return found
    pytest.fail(f"no class {vector['type']}")


@pytest.mark.parametrize("name", RECORDS)
def test_p10_old_bytes_are_read(name: str) -> None:
    vector = load(name)
    value = model_of(vector).from_bytes(bytes.fromhex(vector["hex"]))
    if not name.startswith("newer"):
        assert value.to_json() == vector["json"]
        assert value == model_of(vector).from_json(vector["json"])


@pytest.mark.parametrize("name", EXACT)
def test_p10_what_was_read_is_written_byte_for_byte(name: str) -> None:
    vector = load(name)
    data = bytes.fromhex(vector["hex"])
    assert model_of(vector).from_bytes(data).to_bytes(compress_over=2**30) == data
    assert data[:2] == b"\x01\x00"


@pytest.mark.parametrize("name", [name for name in EXACT if not name.startswith("newer")])
def test_json_of_the_edges_becomes_the_same_bytes(name: str) -> None:
    vector = load(name)
    value = model_of(vector).from_json(vector["json"])
    assert value.to_bytes(compress_over=2**30).hex() == vector["hex"]


def test_every_stored_type_has_a_vector() -> None:
    stored = {load(name)["type"] for name in RECORDS}
    unions = {"InterruptionKind", "Answer", "Disposition", "Durability"}
    told = {name for name, schema in schemas().items() if "code" in schema.get("properties", {})}
    assert schemas().keys() - unions - told - {"Winner"} <= stored


def test_every_kind_answer_and_disposition_has_a_vector() -> None:
    text = json.dumps([wire.decode(bytes.fromhex(load(name)["hex"])) for name in RECORDS], default=repr)
    words = [
        "custom",
        "approval_pending",
        "scheduled_pause",
        *answers.AnswerKind,
        *dispositions.Disposition.VARIANTS,
    ]
    assert [word for word in words if f'"{word}"' not in text] == []


def test_a12_action_digests_stand() -> None:
    for vector in load("action-digest"):
        assert canonical_json(vector["arguments"]).decode() == vector["canonical"]
        assert action_digest(vector["tool"], vector["arguments"]) == vector["digest"]


def test_content_digests_stand() -> None:
    for vector in load("content-digest"):
        assert models.Interrupt.from_json(vector["interrupt"]).content_digest == vector["digest"]


def test_ids_stand() -> None:
    vector = load("ids")
    assert {name: session_hash(name) for name in vector["session_hash"]} == vector["session_hash"]
    run = vector["run_id"]
    assert new_run_id(run["session"], namespace=run["namespace"], key=run["key"]) == run["id"]
    assert interrupt_id(**vector["interrupt_id"]["point"]) == vector["interrupt_id"]["id"]
    assert bits_of(vector["interrupt_id"]["id"]) == bits_of(run["id"]) == session_hash("s_1")
