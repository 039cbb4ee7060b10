-- The first schema. Nothing is ever updated but the end of a version's life, so every revision of
-- every product stays readable until it is pruned: revision R sees the versions with
-- from_revision <= R and (until_revision is null or until_revision > R). The rows of pruned revisions
-- stay, so that numbers never repeat and versions live between revisions that are there.

create table revision (
    number      integer primary key,
    id          text not null unique,
    created_at  integer not null, -- milliseconds since 1970, UTC
    created     integer not null,
    changed     integer not null,
    retired     integer not null,
    unchanged   integer not null,
    published_by   text not null,
    note           text,
    source_digest  text -- SHA-256 of the inputs' bytes, hexadecimal
) strict;

-- The one row that says which store this is and what is live. Ids are random: numbers repeat after a
-- restore, and counters in another store.
create table state (
    only_row         integer primary key check (only_row = 1),
    store_id         text not null default (lower(hex(randomblob(16)))),
    revision_number  integer references revision (number),
    revision_id      text,
    oldest_readable  integer references revision (number), -- older ones were pruned; null: none was
    texts_counter    integer not null default 0, -- goes up by random steps: copies go apart
    keys_counter     integer not null default 0  -- likewise
) strict;
insert into state (only_row) values (1);

create table product_version (
    id                   integer primary key,
    code                 text not null,
    from_revision        integer not null,
    until_revision       integer,
    digest               blob not null, -- SHA-256 of all that follows, to tell changed from unchanged
    document             text not null, -- the canonical JSON; texts held here are named `texts/DIGEST.md`
    content_start        integer,       -- bytes, half-open: where in it the content resources lie
    content_end          integer,
    discount_multiplier  text not null, -- exactly as loaded
    is_orderable         integer not null,
    countries            text not null, -- JSON array
    categories           text not null  -- JSON array
) strict;
create unique index live_product on product_version (code) where until_revision is null;
create index product_history on product_version (code, from_revision);
create index product_appeared on product_version (from_revision);
create index product_retired on product_version (until_revision) where until_revision is not null;

-- Markdown, compressed with zstd, once per digest.
create table text (
    digest         blob primary key,
    markdown       blob not null,
    taken_down_at  integer
) strict, without rowid;

create index text_taken_down on text (taken_down_at) where taken_down_at is not null;

create table product_text (
    product_version_id  integer not null references product_version (id),
    name                text not null,
    digest              blob not null references text (digest),
    source_url          text,
    primary key (product_version_id, name)
) strict, without rowid;
create index product_text_digest on product_text (digest);

-- What outside addresses gave, and what to ask them with again. Written in the transaction that makes
-- the text live: a text of which nobody knew that it was fetched would never be asked for again.
create table fetched_text (
    url            text primary key,
    digest         blob not null references text (digest),
    etag           text,
    last_modified  text,
    fetched_at     integer not null
) strict, without rowid;
create index fetched_text_digest on fetched_text (digest);

create table api_key (
    prefix          text primary key,
    label           text not null,
    secret_hash     blob not null,
    is_test         integer not null,
    api_version     text,
    quota_requests  integer,
    quota_seconds   integer,
    created_at      integer not null,
    expires_at      integer,
    revoked_at      integer,
    rotated_at      integer
) strict;

-- Apart from api_key: written by servers every minute, and no change of a key.
create table api_key_use (
    prefix        text primary key,
    last_used_at  integer not null
) strict, without rowid;
