"""Uses a client made from the served OpenAPI document: lists, filters, pages, reads a product in all forms,
meets errors and values added later. `ci/clients` makes the package `vitrine_client` and runs this.
"""

import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from vitrine_client import AuthenticatedClient
from vitrine_client.api.products import get_product, list_categories, list_countries, list_products
from vitrine_client.api.service import ping
from vitrine_client.api.texts import get_text
from vitrine_client.models import (
    ApiError,
    CategoryList,
    CountryList,
    GetProductContent,
    Pong,
    Product,
    ProductList,
)
from vitrine_client.types import UNSET, Unset

BASE = os.environ["VITRINE_BASE"]


def client_of(base: str, key: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=base, token=key, prefix="", auth_header_name="X-Api-Key")


def page_of(client: AuthenticatedClient, limit: int, after: str | Unset = UNSET) -> ProductList:
    page = list_products.sync(client=client, limit=limit, after=after)
    assert isinstance(page, ProductList), page
    return page


def lists_and_filters(client: AuthenticatedClient) -> None:
    found = list_products.sync(client=client, countries_redeemable_in=["SE", "DK"], is_orderable=True, limit=50)
    assert isinstance(found, ProductList) and len(found.catalog) > 2
    for product in found.catalog:
        assert product.is_orderable and {"SE", "DK"} & set(product.countries_redeemable_in), product.code
    categories = list_categories.sync(client=client)
    assert isinstance(categories, CategoryList)
    assert "fashion" in [category.code for category in categories.categories]
    countries = list_countries.sync(client=client)
    assert isinstance(countries, CountryList) and "GB" in countries.countries
    fashion = list_products.sync(client=client, categories=["fashion"])
    assert isinstance(fashion, ProductList) and fashion.catalog
    assert all("fashion" in product.categories for product in fashion.catalog)


def everything(client: AuthenticatedClient, limit: int) -> list[Product]:
    products: list[Product] = []
    after: str | Unset | None = UNSET
    while after is not None:
        page = page_of(client, limit, after)
        products.extend(page.catalog)
        after = page.pagination.cursors.after
    return products


def amounts(product: Product) -> str:
    if product.payout_type == "gift_card" and product.gift_card:
        return product.gift_card.denominations.minimum_value
    if product.payout_type == "subscription" and product.subscription:
        return product.subscription.subscription_plans[0].price
    if product.payout_type == "payment" and product.payment:
        return product.payment.denominations.minimum_value
    return "of a kind added later"


def pages(client: AuthenticatedClient) -> list[Product]:
    products = everything(client, 7)
    codes = [product.code for product in products]
    assert codes == [product.code for product in page_of(client, 500).catalog]
    assert len(set(codes)) == len(codes) == int(os.environ["VITRINE_PRODUCTS"])
    assert all(len(amounts(product)) > 2 for product in products)
    later = next(product for product in products if product.payout_type == "prepaid_card")
    assert isinstance(later["prepaid_card"], dict)
    return products


def forms(client: AuthenticatedClient) -> None:
    found = {}
    for form in GetProductContent:
        product = get_product.sync("HALLOWMERE-GB", client=client, content=form)
        assert isinstance(product, Product) and product.gift_card
        assert product.state == "LIVE"
        found[form] = product.gift_card.content_resources
    url, md, html = (found[form] for form in (GetProductContent.URL, GetProductContent.MD, GetProductContent.HTML))
    assert isinstance(html.description_html, str) and "<li><strong>Half day" in html.description_html
    assert isinstance(url.description_markdown_url, str)
    digest = re.search(r"([0-9a-f]{64})\.md$", url.description_markdown_url)
    assert digest
    assert get_text.sync(digest[1], client=client) == md.description_md


def known_answers(client: AuthenticatedClient) -> None:
    first = ping.sync_detailed(client=client)
    assert isinstance(first.parsed, Pong) and first.parsed.message == "pong"
    again = ping.sync_detailed(client=client, if_none_match=first.headers["ETag"])
    assert again.status_code == 304


def errors(client: AuthenticatedClient) -> None:
    absent = get_product.sync_detailed("NONE", client=client)
    assert absent.status_code == 404 and isinstance(absent.parsed, ApiError)
    assert absent.parsed.type_ == "not_found"
    refused = list_products.sync_detailed(client=client, limit=0)
    assert refused.status_code == 400 and isinstance(refused.parsed, ApiError) and refused.parsed.details
    assert refused.parsed.details[0].type_ == "out_of_range"
    assert refused.parsed.details[0].location == ["query", "limit"]
    stranger = ping.sync_detailed(client=client_of(BASE, "demo.wrong"))
    assert stranger.status_code == 401 and isinstance(stranger.parsed, ApiError)
    assert stranger.parsed.type_ == "invalid_api_key"


def values_added_later(sample: Product) -> None:
    """A later server sends values that this client can't know."""
    grown = sample.to_dict() | {"state": "RESTING", "availability": "on-demand", "payout_type": "meal_voucher"}
    grown["gift_card"] |= {"barcode_format": "aztec", "redeemable_at": "by-phone", "courier": {"days": 3}}
    grown["meal_voucher"] = {"meals": 5}
    fault = {"type": "on_strike", "message": "no", "help": None}

    class Later(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path.startswith("/product/GROWN")
            self.send_response(200 if is_known else 503)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(grown if is_known else fault).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Later) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = client_of(f"http://127.0.0.1:{server.server_port}", "any.key")
        product = get_product.sync("GROWN", client=client)
        assert isinstance(product, Product) and product.gift_card
        assert (product.state, product.availability) == ("RESTING", "on-demand")
        assert product.gift_card.barcode_format == "aztec"
        assert product.gift_card["courier"] == {"days": 3}
        assert amounts(product) == "of a kind added later"
        assert product["meal_voucher"] == {"meals": 5}
        error = ping.sync(client=client)
        assert isinstance(error, ApiError) and error.type_ == "on_strike"
        server.shutdown()


def main() -> None:
    with client_of(BASE, os.environ["VITRINE_KEY"]) as client:
        lists_and_filters(client)
        products = pages(client)
        forms(client)
        known_answers(client)
        errors(client)
    values_added_later(next(product for product in products if product.code == "HALLOWMERE-GB"))
    print(f"Python: {len(products)} products paged, all forms, errors, values added later")


main()
