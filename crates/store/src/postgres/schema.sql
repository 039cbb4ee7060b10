-- The schema: the tables and columns of ../sqlite/schema.sql, which says what they mean. Comments here are on what differs.
--
-- Everything is in a schema of its own, and every statement names it: nothing depends on a session's search path, which a
-- connection pooler may have set for somebody else. Codes and ids are compared byte by byte (collate "C"). JSON is stored as
-- text, or packed, never as jsonb, which would reorder it.

create table vitrine.schema_version (
    only_row  boolean primary key default true check (only_row),
    version   integer not null
);

create table vitrine.revision (
    number         bigint primary key,
    id             text not null unique,
    former_id      text,
    created_at     bigint not null,
    created        bigint not null,
    changed        bigint not null,
    retired        bigint not null,
    unchanged      bigint not null,
    published_by   text not null,
    note           text,
    source_digest  text
);

create table vitrine.state (
    only_row              boolean primary key default true check (only_row),
    store_id              text not null default (replace(gen_random_uuid()::text, '-', '')),
    revision_number       bigint references vitrine.revision (number),
    revision_id           text,
    oldest_readable       bigint references vitrine.revision (number),
    texts_counter         bigint not null default 0,
    keys_counter          bigint not null default 0,
    assortments_counter   bigint not null default 0,
    assortments_accepted  bigint
);
insert into vitrine.state default values;

create table vitrine.product_version (
    id                   bigint primary key,
    code                 text collate "C" not null,
    from_revision        bigint not null,
    until_revision       bigint,
    digest               bytea not null,
    content_start        bigint,
    content_end          bigint,
    discount_multiplier  text not null,
    is_orderable         boolean not null,
    countries            text not null,
    categories           text not null
);
create unique index live_product on vitrine.product_version (code) where until_revision is null;
create index product_history on vitrine.product_version (code, from_revision);
create index product_appeared on vitrine.product_version (from_revision);
create index product_retired on vitrine.product_version (until_revision) where until_revision is not null;

-- Rows up to a page stay in one piece: a server's start reads all of them. They are compressed already.
create table vitrine.product_document (
    product_version_id  bigint primary key references vitrine.product_version (id),
    document            bytea not null
) with (toast_tuple_target = 8160);
alter table vitrine.product_document alter column document set storage external;

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

create table vitrine.text_change (
    counter         bigint not null,
    counter_before  bigint not null,
    digest          bytea not null,
    is_taken_down   boolean not null,
    changed_at      bigint not null,
    primary key (counter, digest)
);

create table vitrine.catalog_override (
    number      bigint primary key,
    definition  text not null,
    from_at     bigint not null,
    until_at    bigint,
    created_at  bigint not null,
    created_by  text not null,
    note        text,
    status      text not null check (status in ('scheduled', 'active', 'ended')),
    ended_at    bigint,
    ended_by    text,
    end_note    text
);
create index open_override on vitrine.catalog_override (number) where status <> 'ended';

create table vitrine.product_base (
    code            text collate "C" not null,
    version_id      bigint not null references vitrine.product_version (id),
    from_revision   bigint not null,
    until_revision  bigint,
    primary key (code, from_revision)
);
create unique index live_base on vitrine.product_base (code) where until_revision is null;
create index base_of_version on vitrine.product_base (version_id);
create index base_retired on vitrine.product_base (until_revision) where until_revision is not null;

create table vitrine.api_key (
    prefix          text collate "C" primary key,
    label           text not null,
    secret_hash     bytea not null,
    is_test         boolean not null,
    api_version     text,
    quota_requests  bigint,
    quota_seconds   bigint,
    assortment      text collate "C",
    created_at      bigint not null,
    expires_at      bigint,
    revoked_at      bigint,
    rotated_at      bigint,
    digest          bytea not null
);
create index api_key_label on vitrine.api_key (label);

create table vitrine.api_key_use (
    prefix        text collate "C" primary key,
    last_used_at  bigint not null
);

create table vitrine.api_key_day (
    day       text collate "C" not null,
    prefix    text collate "C" not null,
    requests  bigint not null,
    charged   bigint not null,
    primary key (day, prefix)
);

create table vitrine.assortment_version (
    name         text collate "C" not null,
    number       bigint not null,
    id           text not null unique,
    created_at   bigint not null,
    replaced_at  bigint,
    changed_by   text,
    note         text,
    codes        bigint not null,
    digest       bytea not null,
    rules        text,
    primary key (name, number)
);
create unique index current_assortment on vitrine.assortment_version (name) where replaced_at is null;
create index replaced_assortment on vitrine.assortment_version (replaced_at) where replaced_at is not null;

create table vitrine.operator (
    name        text primary key,
    role        text not null,
    password    text,
    stamp       text not null,
    created_at  bigint not null,
    digest      bytea not null
);

create table vitrine.operator_session (
    token_hash  bytea primary key,
    operator    text not null,
    stamp       text not null,
    created_at  bigint not null,
    used_at     bigint not null
);
create index session_operator on vitrine.operator_session (operator, created_at);

create table vitrine.audit_entry (
    number        bigint primary key,
    changed_at    bigint not null,
    changed_by    text not null,
    note          text,
    action        text not null,
    subject_kind  text not null,
    subject       text collate "C" not null,
    changes       text not null,
    digest        bytea not null,
    confirmation  text
);
create index audit_subject on vitrine.audit_entry (subject, number);
create unique index audit_confirmation on vitrine.audit_entry (confirmation) where confirmation is not null;

-- Webhook endpoints, which SQLite has in a file of their own (../sqlite/webhooks.sql).
create table vitrine.webhook_state (
    only_row         boolean primary key default true check (only_row),
    changes          bigint not null,
    key_fingerprint  text,
    origin           text not null -- database in which endpoints were active: in a copy of it they are paused
);
insert into vitrine.webhook_state (changes, origin) values (1, '');

create table vitrine.webhook_endpoint (
    number        bigint generated by default as identity,
    id            text collate "C" primary key,
    document      text not null,
    fence         bigint not null default 0,
    lease         text,
    leased_until  bigint,
    clock         text
) with (fillfactor = 50);

create table vitrine.webhook_attempt (
    endpoint  text collate "C" not null,
    number    bigint not null,
    document  text not null,
    primary key (endpoint, number)
);
