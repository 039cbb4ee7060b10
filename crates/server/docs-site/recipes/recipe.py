"""Prints what can be ordered, in one country if COUNTRY names it, then one product with its texts."""
import json, os, random, time, urllib.error, urllib.parse, urllib.request

BASE, KEY = os.environ["VITRINE_URL"], os.environ["VITRINE_KEY"]
KNOWN = ("gift_card", "subscription", "payment")
TRIES = 5


class ApiError(Exception):
    def __init__(self, body):
        super().__init__(f"{body['type']}: {body['message']} ({body['help']})")
        self.type = body["type"]  # decide by this one


def get(path, query=()):
    address = f"{BASE}{path}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(address, headers={"X-Api-Key": KEY})
    for attempt in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or attempt == TRIES:
                raise ApiError(json.load(error)) from None
            time.sleep(int(error.headers.get("Retry-After", 1)) + random.random())


def products(filters):
    cursor = []
    while (page := get("/product", filters + cursor))["catalog"]:
        yield from page["catalog"]
        cursor = [("after", page["pagination"]["cursors"]["after"])]


def amounts(product):
    details = product[product["payout_type"]]
    if plans := details.get("subscription_plans"):
        return [f"{plan['name']} {plan['price']}" for plan in plans]
    amounts = details["denominations"]
    if amounts.get("type") == "fixed":
        return amounts["available_list"]
    return [f"{amounts['minimum_value']} to {amounts['maximum_value']}"]


filters = [("is_orderable", "true")]
if country := os.environ.get("COUNTRY"):
    filters.append(("countries_redeemable_in", country))
first = None
for product in products(filters):
    # Payout types may be added: skip those that this program doesn't know.
    if product["payout_type"] not in KNOWN:
        continue
    first = first or product["code"]
    print(product["code"], product["name"], ", ".join(amounts(product)), product["currency"])
if first:
    product = get(f"/product/{first}", [("content", "html")])
    texts = product[product["payout_type"]]["content_resources"]
    print(product["code"], texts["locale"], texts["description_html"] or "")
