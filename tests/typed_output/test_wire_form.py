"""Any value of a type can be written in the form a service is bound to, and comes back equal."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_output.types_and_values import TREES, Case, Tree, cases

from dragoman.base import jsontext
from dragoman.providers.anthropic_schema import to_output_schema
from dragoman.providers.openai_schema import strict_schema
from dragoman.testing.mock.anthropic_schemas import schema_violation
from dragoman.testing.mock.openai_strict import strict_flaw
from dragoman.typed_output.wire_form import Inexpressible, Service, wire_form
from dragoman.values.schema import problems
from dragoman.values.typed import Typed, typed

SERVICES: tuple[Service, ...] = get_args(Service)


def _there_and_back(kind: Typed[Any], value: Any, service: Service) -> Any:
    form = wire_form(kind.schema, service)
    plain = msgspec.to_builtins(value, str_keys=True)
    written = form.to_wire(jsontext.decode(jsontext.encode(plain)))
    assert problems(form.schema, written) == []
    return kind.convert(form.from_wire(jsontext.decode(jsontext.encode(written))))


@pytest.mark.parametrize("service", SERVICES)
@given(data=st.data())
def test_any_value_comes_back_equal(service: Service, data: st.DataObject) -> None:
    hint, values = data.draw(cases())
    value = data.draw(values)
    assert _there_and_back(typed(hint), value, service) == value


@given(cases())
def test_openai_can_be_bound_to_any_type(case: Case) -> None:
    strict = strict_schema(wire_form(typed(case[0]).schema, "openai").schema)
    assert strict is not None
    assert strict_flaw(strict) == ""


@given(cases())
def test_anthropic_can_be_bound_to_any_type(case: Case) -> None:
    assert schema_violation(to_output_schema(wire_form(typed(case[0]).schema, "anthropic").schema), "schema") is None


@pytest.mark.parametrize("service", ["openai", "gemini", "tool", "plain"])
@given(tree=TREES)
def test_a_type_that_contains_itself_comes_back_equal(service: Service, tree: Tree) -> None:
    assert _there_and_back(typed(Tree), tree, service) == tree


def test_a_type_that_contains_itself_is_not_for_anthropic() -> None:
    with pytest.raises(Inexpressible):
        wire_form(typed(Tree).schema, "anthropic")


@pytest.mark.parametrize("service", SERVICES)
@given(data=st.data())
def test_a_value_in_the_plain_form_is_taken_all_the_same(service: Service, data: st.DataObject) -> None:
    """A model that is not bound may ignore the form it was asked for."""
    hint, values = data.draw(
        st.sampled_from([(dict[str, int], st.just({"a": 1})), (tuple[int, str], st.just((1, "a"))), (list[int], st.just([1]))])
    )
    value = data.draw(values)
    kind = typed(hint)
    form = wire_form(kind.schema, service)
    assert kind.convert(form.from_wire(msgspec.to_builtins(value))) == value


OPEN: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "more": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": {"type": "array", "items": {"type": "integer"}},
}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("value", [{"name": "a"}, {"name": "a", "more": 1}, {"name": "a", "x": [1], "y": []}])
def test_properties_beyond_the_named_ones_come_back(service: Service, value: dict[str, Any]) -> None:
    assert _there_and_back(typed(OPEN), value, service) == value
