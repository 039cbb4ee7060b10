"""Keeps a copy of a catalog that changes, by the loop of the changes feed; `ci/generated-clients` runs this."""

import os

from openapi_client import ApiClient, Configuration, ProductsApi

base, key = os.environ["VITRINE_CHANGING_BASE"], os.environ["VITRINE_CHANGING_KEY"]
products = ProductsApi(ApiClient(Configuration(host=base, api_key={"ApiKey": key})))
copy, token, answers, removed = {}, None, 0, 0


def apply_next():
    global token, answers, removed
    answer = products.list_changes(since=token, limit=20, wait=None if token is None else 10)
    for change in answer.changes:
        if change.product is None:
            removed += copy.pop(change.code, None) is not None
        else:
            copy[change.code] = change.product
    token, answers = answer.next, answers + 1
    return answer.has_more


while apply_next():
    pass
assert answers > 3, "several answers"
# A wait ends with a change: a product is renamed, another one removed, and then put back.
while apply_next() or removed == 0 or products.list_products().catalog != [copy[code] for code in sorted(copy)]:
    assert answers < 60, "equal at some time"
print(f"Python: a copy of {len(copy)} products, {answers} answers, {removed} removed")
