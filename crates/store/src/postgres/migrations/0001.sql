-- The first schema; what the columns mean stands in ../../sqlite/migrations/0001.sql, which says the same for SQLite.
-- Everything lies in a schema of its own, and every statement names it: nothing depends on a session's search path,
-- which a connection pooler may have set for somebody else. Codes and ids are compared byte by byte (collate "C").

-- What this schema is, and the oldest release, by the newest schema that it knows, that can still work with it.
create table vitrine.schema_version (
    only_row        boolean primary key default true check (only_row),
    version         integer not null,
    oldest_release  integer not null
);

create table vitrine.revision (
    number      bigint primary key,
    id          text not null unique,
    created_at  bigint not null, -- milliseconds since 1970, UTC
    created     bigint not null,
    changed     bigint not null,
    retired     bigint not null,
    unchanged   bigint not null,
    published_by   text not null,
    note           text,
    source_digest  text
);

create table vitrine.state (
    only_row         boolean primary key default true check (only_row),
    store_id         text not null,
    revision_number  bigint references vitrine.revision (number),
    revision_id      text,
    oldest_readable  bigint references vitrine.revision (number),
    texts_counter    bigint not null default 0,
    keys_counter     bigint not null default 0
);
insert into vitrine.state (store_id) values (replace(gen_random_uuid()::text, '-', ''));

-- Rows up to a page stay in one piece and as they are: a server's start reads all of them.
create table vitrine.product_version (
    id                   bigint primary key,
    code                 text collate "C" not null,
    from_revision        bigint not null,
    until_revision       bigint,
    digest               bytea not null,
    document             text not null, -- never jsonb: that would reorder it
    content_start        bigint,
    content_end          bigint,
    discount_multiplier  text not null,
    is_orderable         boolean not null,
    countries            text not null,
    categories           text not null
) with (toast_tuple_target = 8160);
create unique index live_product on vitrine.product_version (code) where until_revision is null;
create index product_history on vitrine.product_version (code, from_revision);
create index product_appeared on vitrine.product_version (from_revision);
create index product_retired on vitrine.product_version (until_revision) where until_revision is not null;

create table vitrine.markdown_text (
    digest         bytea primary key,
    markdown       bytea not null,
    taken_down_at  bigint
);
-- It is compressed already.
alter table vitrine.markdown_text alter column markdown set storage external;
create index text_taken_down on vitrine.markdown_text (taken_down_at) where taken_down_at is not null;

create table vitrine.product_text (
    product_version_id  bigint not null references vitrine.product_version (id),
    name                text not null,
    digest              bytea not null references vitrine.markdown_text (digest),
    source_url          text,
    primary key (product_version_id, name)
);
create index product_text_digest on vitrine.product_text (digest);

create table vitrine.fetched_text (
    url            text collate "C" primary key,
    digest         bytea not null references vitrine.markdown_text (digest),
    etag           text,
    last_modified  text,
    fetched_at     bigint not null
);
create index fetched_text_digest on vitrine.fetched_text (digest);

create table vitrine.api_key (
    prefix          text collate "C" primary key,
    label           text not null,
    secret_hash     bytea not null,
    is_test         boolean not null,
    api_version     text,
    quota_requests  bigint,
    quota_seconds   bigint,
    created_at      bigint not null,
    expires_at      bigint,
    revoked_at      bigint,
    rotated_at      bigint
);

create table vitrine.api_key_use (
    prefix        text collate "C" primary key,
    last_used_at  bigint not null
);
