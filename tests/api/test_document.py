"""The OpenAPI document as such."""

from __future__ import annotations

import json

import pytest

import dashboard.api.v1  # noqa: F401  adds the operations that the document lists
from dashboard.api.framework.openapi import document
from dashboard.api.framework.operation import OPERATIONS, TERMS

from .schemas import operations
from .table import TABLE


@pytest.mark.matrix
def test_it_is_valid_openapi():
    from openapi_spec_validator import OpenAPIV31SpecValidator  # takes a while

    sent = json.loads(json.dumps(document()))
    assert not list(OpenAPIV31SpecValidator(sent).iter_errors())


def test_a_revision_counts_steps_and_a_version_numbers_a_definition():
    schemas = document()["components"]["schemas"]
    numbers = {(of, name) for of, one in schemas.items() for name, field in one.get("properties", {}).items()
               if field.get("type") == "integer"}  # fmt: skip
    assert {("InstanceOut", "revision"), ("InstanceOut", "version")} <= numbers
    assert [of for of, name in numbers if name == "definition"] == []
    for of in ("StepOut", "ExplanationOut", "PreviewOut", "BulkOut", "RowOut", "SessionOut"):
        assert {name for name in schemas[of]["properties"] if name in ("revision", "version")} == {"revision"}, of


def test_every_operation_says_all_there_is_to_know():
    schemes = set(document()["components"]["securitySchemes"])
    for id, described in operations().items():
        asked = {name for one in described["security"] for name in one}
        assert asked == schemes == {"Bearer", "Session"}, id
        assert described["summary"], id
        assert described["x-right"] == OPERATIONS[id].right, id
        assert f"`{OPERATIONS[id].right}`" in described["description"], id
        statuses = {str(status) for status in described["responses"]}
        assert statuses >= {"400", "401", "403", "422", "429", "503"}, id
        named = {term["name"]: term for term in described["parameters"]}
        assert ("Idempotency-Key" in named) == OPERATIONS[id].once, id
        assert all(term.get("description") for term in named.values() if term["in"] == "path"), id


def test_an_operation_takes_the_terms_that_the_document_lists():
    listed = {
        id: {term["name"] for term in described["parameters"] if term["in"] == "query"}
        for id, described in operations().items()
    }
    assert listed == TERMS


def test_a_request_with_a_query_does_not_need_the_document(boss, door):
    document.cache_clear()
    assert boss.get("/machines/door/instances?limit=1").status_code == 200
    assert boss.get("/machines/door/instances?limt=1").status_code == 422
    assert document.cache_info().currsize == 0


def test_operations_have_summaries_of_their_own_that_name_a_thing():
    summaries = [described["summary"] for described in operations().values()]
    assert len(set(summaries)) == len(summaries)
    assert [summary for summary in summaries if " " not in summary] == []
    assert "the rights to make it" in operations()["takeOverSchedule"]["description"]


def test_operations_that_name_a_thing_in_their_body_say_that_it_may_not_be_there():
    for id in ("acknowledgeAlarm", "assignAlarm", "snoozeAlarm", "wakeAlarm"):
        assert 404 in {int(status) for status in operations()[id]["responses"]}, id


def test_every_example_of_a_body_is_one_the_schema_takes():
    from jsonschema import Draft202012Validator

    shown = 0
    for id, described in operations().items():
        content = described.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None:
            continue
        schema = content["schema"] | {"components": document()["components"]}
        for body in (content.get("example", TABLE[id].body), TABLE[id].body):
            Draft202012Validator(schema).validate(body)
            shown += 1
    assert shown > 40
