"""Schemathesis hooks: what no schema can say.

`before` and `after` exclude each other, which OpenAPI can't express: such cases are dropped.
"""

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    query = case.query or {}
    return not ("before" in query and "after" in query)
