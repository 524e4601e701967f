"""Settings and durability classes: documented, checked, read from the environment by the edges only."""

from datetime import timedelta

import pytest

from broker.core.durability import Durability
from broker.core.limits import JSON
from broker.core.settings import Settings
from broker.errors import InvalidInput


def test_the_defaults_of_the_design() -> None:
    settings = Settings()
    assert settings.lease == timedelta(seconds=15)
    assert settings.renew_every == timedelta(seconds=3.75)
    assert (settings.tries, settings.sweep_every) == (10, timedelta(seconds=1))
    assert settings.deadline == timedelta(hours=24)
    assert settings.keep_settled == timedelta(hours=1)
    assert settings.keep_history == timedelta(days=7)
    assert settings.keep_parked == timedelta(minutes=10)
    assert settings.durability is None


def test_the_environment_gives_seconds_words_and_numbers() -> None:
    env = {
        "BROKER_LEASE": "2.5",
        "BROKER_TRIES": "3",
        "BROKER_DURABILITY": "replicated(1)",
        "BROKER_DEADLINE": "never",
    }
    settings = Settings.from_env({**env, "BROKER_URL": "redis://x", "LEASE": "9"})
    assert settings.lease == timedelta(seconds=2.5)
    assert settings.tries == 3
    assert settings.durability == Durability.replicated(1)
    assert settings.deadline is None
    assert Settings.from_env({}) == Settings()


@pytest.mark.parametrize(
    ("env", "field"),
    [
        ({"BROKER_LEASE": "soon"}, "BROKER_LEASE"),
        ({"BROKER_TRIES": "1.5"}, "BROKER_TRIES"),
        ({"BROKER_TRIES": "0"}, "tries"),
        ({"BROKER_LEASE": "-1"}, "lease"),
        ({"BROKER_LEASE": "1e300"}, "BROKER_LEASE"),
        ({"BROKER_DURABILITY": "replicated(0)"}, "durability"),
    ],
)
def test_p12_settings_that_cannot_be_read_are_named(env: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Settings.from_env(env)
    assert caught.value.field == field


def test_rule_15_a_creating_request_may_not_outlive_the_records_it_would_repeat() -> None:
    with pytest.raises(InvalidInput, match="keep_settled"):
        Settings(retry_window=timedelta(hours=1))
    with pytest.raises(InvalidInput, match="keep_settled"):
        Settings(keep_parked=timedelta(hours=2))


@pytest.mark.parametrize("text", ["memory", "fsynced", "replicated(1)", "replicated(99)"])
def test_durability_classes_are_text_on_the_wire(text: str) -> None:
    assert str(Durability.parse(text)) == Durability.parse(text).to_wire() == text
    assert Durability.from_json(text) == Durability.parse(text)


@pytest.mark.parametrize("text", ["", "replicated", "replicated(0)", "replicated(100)", "always", None, 1])
def test_p12_other_durability_words_are_refused(text: JSON) -> None:
    with pytest.raises(InvalidInput, match="durability"):
        Durability.from_json(text)
