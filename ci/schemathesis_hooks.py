"""Schemathesis hooks: cases that the document's schemas judge otherwise than the service.

`before` and `after` exclude each other, which OpenAPI can't express. Reserved words match the pattern of codes or payout
types and are refused: a `not` beside the pattern would spoil the types of generated clients. Tokens of the changes feed
can't be made up, and are good for the filters that they were made with. Nothing waits for changes: none come. Pairs of
capitals become `GB`, since most are no country, and searches of many words or none become one word.
"""

import os
import re
from pathlib import Path

import schemathesis

CHANGES = "/product/changes"
FILTERS = ("is_orderable", "countries_redeemable_in", "categories", "currencies", "payout_types", "codes")

RESERVED = {
    ".", "..", "categories", "countries", "changes", "name", "code", "currency", "state", "is_orderable", "payout_type",
    "countries_redeemable_in", "customer_service", "discount_multiplier", "availability",
    "undefined", "null", "None", "nil", "NaN",
}  # fmt: skip

# The file into which each use of a token is noted, and the tokens with their filters.
noted = os.environ.get("VITRINE_TOKENS_USED")
tokens = {}


@schemathesis.hook
def filter_case(context, case):
    query, path = case.query or {}, case.path_parameters or {}
    has_one_cursor = not ("before" in query and "after" in query)
    values = [*path.values(), *(query.get(name) for name in ("before", "after", "codes", "categories", "payout_types"))]
    listed = (item for value in values for item in (value if isinstance(value, list) else [value]))
    return has_one_cursor and not any(item in RESERVED for item in listed if isinstance(item, str))


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Links of the changes feed pass filters that the request has. Those that it hasn't count as faults here."""
    [link] = raw_schema["paths"][CHANGES]["get"]["responses"]["200"]["links"].values()
    link["parameters"] = {"query.since": link["parameters"]["query.since"]}


@schemathesis.hook
def before_call(context, case, kwargs):
    query = case.query
    countries = query and query.get("countries_redeemable_in")
    if isinstance(countries, list):
        pairs = (str(country) for country in countries)
        query["countries_redeemable_in"] = ["GB" if re.fullmatch("[A-Z]{2}", pair) else pair for pair in pairs]
    words = query and query.get("q")
    if isinstance(words, str) and 0 < len(words) <= 100 and (not words.strip() or len(re.findall(r"[^\W_]+", words)) > 4):
        query["q"] = "card"
    if case.operation.path != CHANGES or not query:
        return
    if str(query.get("wait")) in map(str, range(56)):
        query["wait"] = 0
    if case.meta is None or case.meta.generation.mode.is_negative or "since" not in query:
        return
    if query["since"] not in tokens:
        if not tokens:
            del query["since"]
            return
        query["since"] = next(reversed(tokens))
    elif noted and case.method == "GET":
        with Path(noted).open("a") as file:
            print(query["since"], file=file)
    for name in FILTERS:
        query.pop(name, None)
    query.update(tokens[query["since"]])


@schemathesis.hook
def after_call(context, case, response):
    if case.operation.path == CHANGES and case.method == "GET" and response.status_code == 200:
        query = case.query or {}
        tokens[response.json()["next"]] = {name: query[name] for name in FILTERS if name in query}
