"""Schemathesis hooks: cases that the document's schemas judge otherwise than the service.

`before` and `after` exclude each other, which OpenAPI can't express. An empty `X-Simulate` counts as none: its enum
lists only what clients may mean.
"""

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    query, headers = case.query or {}, case.headers or {}
    has_one_cursor = not ("before" in query and "after" in query)
    return has_one_cursor and str(headers.get("X-Simulate", "none")).strip() != ""
