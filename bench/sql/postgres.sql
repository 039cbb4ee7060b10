-- The catalog as a typical engineer would model it in PostgreSQL, filled from the lines that psql reads.
create table product (
    code text primary key,
    name text not null,
    currency text not null,
    state text not null,
    is_orderable boolean not null,
    payout_type text not null,
    categories text[] not null,
    countries_redeemable_in text[] not null,
    phone_number text,
    customer_service_url text,
    discount_multiplier text not null,
    availability text,
    gift_card jsonb not null
);

create temporary table line (document jsonb);
-- Quote and delimiter are characters that no line has: each line is one value.
\copy line from pstdin with (format csv, quote e'\x01', delimiter e'\x02')

insert into product
select document ->> 'code',
       document ->> 'name',
       document ->> 'currency',
       document ->> 'state',
       (document ->> 'is_orderable')::boolean,
       document ->> 'payout_type',
       array(select jsonb_array_elements_text(document -> 'categories')),
       array(select jsonb_array_elements_text(document -> 'countries_redeemable_in')),
       document #>> '{customer_service,phone_number}',
       document #>> '{customer_service,website_url}',
       document ->> 'discount_multiplier',
       document ->> 'availability',
       document -> 'gift_card'
from line;

create index product_countries on product using gin (countries_redeemable_in);
create index product_categories on product using gin (categories);
vacuum analyze product;
