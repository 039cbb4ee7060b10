"""Keeps a copy of a catalog that changes, by the loop of the changes feed, with a client made from the served OpenAPI
document. `ci/clients` runs this.
"""

import os

import httpx
from vitrine_client import AuthenticatedClient
from vitrine_client.api.products import list_changes, list_products
from vitrine_client.models import Changes, Product, ProductList
from vitrine_client.types import UNSET

CLIENT = AuthenticatedClient(
    base_url=os.environ["VITRINE_CHANGING_BASE"],
    token=os.environ["VITRINE_CHANGING_KEY"],
    prefix="",
    auth_header_name="X-Api-Key",
    # More than the longest wait: by default it is five seconds.
    timeout=httpx.Timeout(60),
)


class Copy:
    def __init__(self) -> None:
        self.products: dict[str, Product] = {}
        self.token: str | None = None
        self.answers = self.removed = 0

    def next(self) -> bool:
        since, wait = (UNSET, UNSET) if self.token is None else (self.token, 10)
        answer = list_changes.sync(client=CLIENT, since=since, limit=20, wait=wait)
        assert isinstance(answer, Changes), answer
        for change in answer.changes:
            if change.product is None:
                self.removed += self.products.pop(change.code, None) is not None
            else:
                self.products[change.code] = change.product
        self.token = answer.next_
        self.answers += 1
        return answer.has_more

    def is_equal(self) -> bool:
        page = list_products.sync(client=CLIENT)
        assert isinstance(page, ProductList)
        return page.catalog == [self.products[code] for code in sorted(self.products)]


copy = Copy()
while copy.next():
    pass
assert copy.answers > 3, "several answers"
# A wait ends with a change: a product is renamed, another one removed, and then put back.
while copy.next() or copy.removed == 0 or not copy.is_equal():
    assert copy.answers < 60, "equal at some time"
print(f"Python: a copy of {len(copy.products)} products, {copy.answers} answers, {copy.removed} removed")
