-- Documents lie in a table of their own, packed (see ../../document.rs): rows of versions are short, so ending many of them
-- rewrites few pages, and reading what indexes don't know reads few. Bases have the columns of versions.

create table version_8 (
    id                   integer primary key,
    code                 text not null,
    from_revision        integer not null,
    until_revision       integer,
    digest               blob not null, -- SHA-256 of code, document (unpacked), the columns below and the texts
    content_start        integer,       -- bytes, half-open: where in the document the content resources lie
    content_end          integer,
    discount_multiplier  text not null, -- exactly as loaded
    is_orderable         integer not null,
    countries            text not null, -- JSON array
    categories           text not null, -- JSON array
    record_digest        blob           -- of the record that led to the version, as it was loaded; null if there was none
) strict;
insert into version_8
    select id, code, from_revision, until_revision, digest, content_start, content_end,
        discount_multiplier, is_orderable, countries, categories, null
    from product_version;

-- The canonical JSON of each version; texts held here are named `texts/DIGEST.md`.
create table product_document (
    product_version_id  integer primary key references product_version (id),
    document            blob not null -- zstd
) strict;
insert into product_document select id, pack_document(document) from product_version;

drop table product_version;
alter table version_8 rename to product_version;
create unique index live_product on product_version (code) where until_revision is null;
create index product_history on product_version (code, from_revision);
create index product_appeared on product_version (from_revision);
create index product_retired on product_version (until_revision) where until_revision is not null;

alter table base_version rename column product to json;
alter table base_version add column content_start integer;
alter table base_version add column content_end integer;
alter table base_version add column discount_multiplier text not null default '';
alter table base_version add column is_orderable integer not null default 0;
alter table base_version add column countries text not null default '';
alter table base_version add column categories text not null default '';
alter table base_version add column own_texts text not null default ''; -- JSON array
alter table base_version add column document blob not null default x''; -- zstd
