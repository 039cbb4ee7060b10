"""Schemathesis hooks: what no schema can say.

`before` and `after` exclude each other, which OpenAPI can't express: such cases are dropped.
"""

import schemathesis


@schemathesis.hook
def filter_case(context, case):
    query = case.query or {}
    return not ("before" in query and "after" in query)


@schemathesis.hook
def before_add_examples(context, examples):
    """The document's examples of all parameters of an operation are sent together: the two cursors can't be."""
    for case in examples:
        if case.query and "after" in case.query:
            case.query.pop("before", None)
