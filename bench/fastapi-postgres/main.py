"""The catalog by FastAPI over PostgreSQL: asyncpg, pydantic models, gzip."""

import hashlib
import json
import os
from contextlib import asynccontextmanager
from typing import Annotated

import asyncpg
from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request
from fastapi.middleware.gzip import GZipMiddleware
from pydantic import BaseModel

KEYS = {hashlib.sha256(os.environ["API_KEY"].encode()).digest()}


class CustomerService(BaseModel):
    phone_number: str | None
    website_url: str | None


class Denominations(BaseModel):
    type: str
    minimum_value: str
    maximum_value: str
    available_list: list[str] | None


class Assets(BaseModel):
    card_image_url: str | None
    icon_image_url: str | None
    primary_color: str | None


class Expiry(BaseModel):
    date_policy: str | None
    in_months: int
    type: str


class ContentResources(BaseModel):
    description_markdown_url: str | None
    disclaimer_markdown_url: str | None
    refund_policy_markdown_url: str | None
    reissuance_policy_markdown_url: str | None
    terms_buyer_markdown_url: str | None
    terms_consumer_markdown_url: str | None
    redemption_instructions_markdown_url: str | None
    locale: str | None


class GiftCard(BaseModel):
    denominations: Denominations
    assets: Assets
    balance_check_url: str | None
    expiry: Expiry
    redeemable_at: str
    website_url: str | None
    barcode_format: str | None
    e_code_usage_type: str
    content_resources: ContentResources


class Product(BaseModel):
    name: str
    code: str
    currency: str
    state: str
    is_orderable: bool
    payout_type: str
    categories: list[str]
    countries_redeemable_in: list[str]
    customer_service: CustomerService
    discount_multiplier: str
    availability: str | None
    gift_card: GiftCard


class Cursors(BaseModel):
    before: str | None
    after: str | None


class PageSize(BaseModel):
    limit: int


class Pagination(BaseModel):
    cursors: Cursors
    page: PageSize


class Page(BaseModel):
    catalog: list[Product]
    pagination: Pagination


async def prepare(connection):
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")


@asynccontextmanager
async def lifespan(app):
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], init=prepare) as pool:
        app.state.pool = pool
        yield


def check_key(x_api_key: Annotated[str | None, Header()] = None):
    if x_api_key is None or hashlib.sha256(x_api_key.encode()).digest() not in KEYS:
        raise HTTPException(401)


app = FastAPI(lifespan=lifespan, dependencies=[Depends(check_key)])
# The level that the others compress with; the default would be 9.
app.add_middleware(GZipMiddleware, compresslevel=6)


def product(row):
    return Product(
        name=row["name"],
        code=row["code"],
        currency=row["currency"],
        state=row["state"],
        is_orderable=row["is_orderable"],
        payout_type=row["payout_type"],
        categories=row["categories"],
        countries_redeemable_in=row["countries_redeemable_in"],
        customer_service=CustomerService(
            phone_number=row["phone_number"], website_url=row["customer_service_url"]
        ),
        discount_multiplier=row["discount_multiplier"],
        availability=row["availability"],
        gift_card=row["gift_card"],
    )


@app.get("/v2/product")
async def list_products(
    request: Request,
    countries_redeemable_in: Annotated[list[str], Query()] = [],
    categories: Annotated[list[str], Query()] = [],
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 500,
) -> Page:
    values = [after, limit]
    sql = "select * from product where code > $1"
    for column, wanted in [("countries_redeemable_in", countries_redeemable_in), ("categories", categories)]:
        if wanted:
            values.append(wanted)
            sql += f" and {column} && ${len(values)}"
    rows = await request.app.state.pool.fetch(sql + " order by code limit $2", *values)
    cursors = Cursors(
        before=rows[0]["code"] if rows else None,
        after=rows[-1]["code"] if rows else None,
    )
    return Page(
        catalog=[product(row) for row in rows],
        pagination=Pagination(cursors=cursors, page=PageSize(limit=limit)),
    )


@app.get("/v2/product/{code}")
async def get_product(request: Request, code: str) -> Product:
    row = await request.app.state.pool.fetchrow("select * from product where code = $1", code)
    if row is None:
        raise HTTPException(404)
    return product(row)
