-- The catalog as a typical engineer would model it in SQLite, filled from the table `line`.
create table product (
    code text primary key not null,
    name text not null,
    currency text not null,
    state text not null,
    is_orderable boolean not null,
    payout_type text not null,
    categories text not null,
    countries_redeemable_in text not null,
    phone_number text,
    customer_service_url text,
    discount_multiplier text not null,
    availability text,
    gift_card text not null
);
create table product_country (
    product_code text not null references product (code),
    country text not null,
    primary key (product_code, country)
) without rowid;
create table product_category (
    product_code text not null references product (code),
    category text not null,
    primary key (product_code, category)
) without rowid;

insert into product
select document ->> 'code',
       document ->> 'name',
       document ->> 'currency',
       document ->> 'state',
       document ->> 'is_orderable',
       document ->> 'payout_type',
       document -> 'categories',
       document -> 'countries_redeemable_in',
       document ->> '$.customer_service.phone_number',
       document ->> '$.customer_service.website_url',
       document ->> 'discount_multiplier',
       document ->> 'availability',
       document -> 'gift_card'
from line;
insert into product_country
select code, country.value from product, json_each(countries_redeemable_in) country;
insert into product_category
select code, category.value from product, json_each(categories) category;
create index product_country_country on product_country (country, product_code);
create index product_category_category on product_category (category, product_code);
drop table line;
vacuum;
analyze;
