"""Uses the client that openapi-generator makes of the OpenAPI document; `ci/generated-clients` runs this."""

import json
import os
import urllib.request

from openapi_client import ApiClient, ApiError, Configuration, ProductsApi, ServiceApi
from openapi_client.exceptions import BadRequestException, NotFoundException


def client_of(base):
    return ApiClient(Configuration(host=base, api_key={"ApiKey": os.environ["VITRINE_KEY"]}))


def everything(products):
    found, after = [], None
    while True:
        page = products.list_products(limit=7, after=after)
        found += page.catalog
        after = page.pagination.cursors.after
        if after is None:
            return found


def without_nulls(value):
    """Texts in another form than the answer's are null in the client and absent from the answer."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value


base = os.environ["VITRINE_BASE"]
client = client_of(base)
products = ProductsApi(client)

# A walk, in which nothing is lost.
walked = everything(products)
assert len({product.code for product in walked}) == len(walked) == int(os.environ["VITRINE_PRODUCTS"])
request = urllib.request.Request(f"{base}/product", headers={"X-Api-Key": os.environ["VITRINE_KEY"]})
plain = json.load(urllib.request.urlopen(request))["catalog"]
assert without_nulls([product.to_dict() for product in walked]) == without_nulls(plain)
prepaid = next(product for product in walked if product.payout_type == "prepaid_card")
assert prepaid.additional_properties["prepaid_card"]["assets"]

# Filters.
found = products.list_products(countries_redeemable_in=["SE", "DK"], is_orderable=True).catalog
assert len(found) > 2
assert all(one.is_orderable and {"SE", "DK"} & set(one.countries_redeemable_in) for one in found)

# The three forms of texts.
for form, suffix in [("url", "markdown_url"), ("md", "md"), ("html", "html")]:
    texts = products.get_product("HALLOWMERE-GB", content=form).gift_card.content_resources
    for name in ["description", "terms_consumer", "redemption_instructions"]:
        assert len(getattr(texts, f"{name}_{suffix}")) > 20, (form, name)

# Errors.
try:
    products.get_product("NONE")
    raise AssertionError("a product that isn't there")
except NotFoundException as error:
    assert isinstance(error.data, ApiError) and error.data.type == "not_found"
try:
    products.list_products(before="A", after="B")
    raise AssertionError("two cursors")
except BadRequestException as error:
    assert error.data.details[0].location == ["query", "after"]
assert ServiceApi(client).head_ping_with_http_info().status_code == 200

# Values and fields added later.
client = client_of(os.environ["VITRINE_LATER"])
later = ProductsApi(client)
assert len(everything(later)) == len(walked)
product = later.get_product("HALLOWMERE-GB")
assert (product.state, product.payout_type, product.availability) == ("RESTING", "meal_voucher", "on-demand")
assert product.additional_properties["meal_voucher"]["meals"] == 5
assert product.gift_card.additional_properties["courier"] == {"days": 3}
try:
    later.get_product("NONE")
    raise AssertionError("a product that isn't there")
except NotFoundException as error:
    assert error.data.type == "added_later"

print(f"Python: {len(walked)} products walked, filters, three forms, errors, values added later")
