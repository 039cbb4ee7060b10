-- The schema. ../postgres/schema.sql has the same tables and columns for PostgreSQL; comments on their meaning are here.
--
-- Of a version only its end and its record's digest are updated, so every revision stays readable until it is pruned:
-- revision R has the versions with from_revision <= R and (until_revision is null or until_revision > R). The rows of pruned
-- revisions stay, so that numbers never repeat, and so that versions begin and end with revisions that exist.
--
-- Times are milliseconds since 1970, UTC. Digests are XXH3-128 unless a comment says otherwise.

create table revision (
    number         integer primary key,
    id             text not null unique,
    former_id      text, -- the id before a restore gave it a new one
    created_at     integer not null,
    created        integer not null,
    changed        integer not null,
    retired        integer not null,
    unchanged      integer not null,
    published_by   text not null,
    note           text,
    source_digest  text -- SHA-256 of the inputs' bytes, hexadecimal
) strict;

-- The one row that says which store this is and what is live. Ids are random: numbers repeat after a restore, and counters
-- in another store. Counters grow by random steps, so that they differ between copies that were changed separately.
create table state (
    only_row              integer primary key check (only_row = 1),
    store_id              text not null default (lower(hex(randomblob(16)))),
    revision_number       integer references revision (number),
    revision_id           text,
    oldest_readable       integer references revision (number), -- older ones were pruned; null: none was
    texts_counter         integer not null default 0,
    keys_counter          integer not null default 0,
    assortments_counter   integer not null default 0,
    assortments_accepted  integer -- time; only ever later
) strict;
insert into state (only_row) values (1);

create table product_version (
    id                   integer primary key,
    code                 text not null,
    from_revision        integer not null,
    until_revision       integer,
    digest               blob not null, -- of code, document (unpacked), discount to categories, and the texts
    content_start        integer,       -- bytes, half-open: where in the document the content resources are
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

-- The canonical JSON of each version; texts held here are named `texts/DIGEST.md`. In a table of its own: rows of versions
-- are short, so ending many of them rewrites few pages, and reading what indexes don't know reads few.
create table product_document (
    product_version_id  integer primary key references product_version (id),
    document            blob not null -- packed: see ../document.rs
) strict;

-- Markdown, compressed with zstd, once per digest (SHA-256).
create table markdown_text (
    digest         blob primary key,
    markdown       blob not null,
    taken_down_at  integer
) strict, without rowid;
create index text_taken_down on markdown_text (taken_down_at) where taken_down_at is not null;

create table product_text (
    product_version_id  integer not null references product_version (id),
    name                text not null,
    digest              blob not null references markdown_text (digest),
    source_url          text,
    primary key (product_version_id, name)
) strict, without rowid;
create index product_text_digest on product_text (digest);

-- What outside addresses gave, and what to ask them with again. Written in the transaction that makes the text live: a text
-- of which nobody knew that it was fetched would never be asked for again.
create table fetched_text (
    url            text primary key,
    digest         blob not null references markdown_text (digest),
    etag           text,
    last_modified  text,
    fetched_at     integer not null
) strict, without rowid;
create index fetched_text_digest on fetched_text (digest);

-- Each time a text is taken down or put back, for ever. A restore is one step, with a row for each text whose status differs
-- from the backup's. Digests aren't references: a text may be pruned.
create table text_change (
    counter         integer not null, -- state.texts_counter after the step: random, so that it names one state of texts
    counter_before  integer not null,
    digest          blob not null,    -- empty: the step changed no text
    is_taken_down   integer not null,
    changed_at      integer not null,
    primary key (counter, digest)
) strict, without rowid;

-- Overrides of operators. Versions are products as clients see them. While overrides change a product, product_base has the
-- version that loads brought. A version that clients never saw has the revisions 0 and 0.
create table catalog_override (
    number      integer primary key,
    definition  text not null, -- JSON
    from_at     integer not null,
    until_at    integer,
    created_at  integer not null,
    created_by  text not null,
    note        text,
    status      text not null check (status in ('scheduled', 'active', 'ended')),
    ended_at    integer,
    ended_by    text,
    end_note    text
) strict;
create index open_override on catalog_override (number) where status <> 'ended';

create table product_base (
    code            text not null,
    version_id      integer not null references product_version (id),
    from_revision   integer not null,
    until_revision  integer,
    primary key (code, from_revision)
) strict, without rowid;
create unique index live_base on product_base (code) where until_revision is null;
create index base_of_version on product_base (version_id);
create index base_retired on product_base (until_revision) where until_revision is not null;

create table api_key (
    prefix          text primary key,
    label           text not null,
    secret_hash     blob not null, -- SHA-256
    is_test         integer not null,
    api_version     text,
    quota_requests  integer,
    quota_seconds   integer,
    assortment      text, -- null: the whole catalog
    created_at      integer not null,
    expires_at      integer,
    revoked_at      integer,
    rotated_at      integer,
    digest          blob not null -- of all other columns: tells a row that something other than Vitrine changed
) strict;
create index api_key_label on api_key (label);

-- Apart from api_key: servers write it every minute, and it is no change of a key.
create table api_key_use (
    prefix        text primary key,
    last_used_at  integer not null
) strict, without rowid;

-- Requests of each key by UTC day: servers add to them every minute. A restore keeps them.
create table api_key_day (
    day       text not null, -- 2026-01-31
    prefix    text not null,
    requests  integer not null,
    charged   integer not null,
    primary key (day, prefix)
) strict, without rowid;

-- Each version of each assortment, for ever. The newest number of a name is its current version; it is live if it has rules.
-- Only replaced_at is ever updated.
create table assortment_version (
    name         text not null,
    number       integer not null, -- from 1, for each name
    id           text not null unique,
    created_at   integer not null,
    replaced_at  integer,          -- null: current
    changed_by   text,
    note         text,
    codes        integer not null, -- number of product codes in the rules
    digest       blob not null,    -- of all other columns but replaced_at
    rules        text,             -- JSON; null: a removal
    primary key (name, number)
) strict;
create unique index current_assortment on assortment_version (name) where replaced_at is null;
create index replaced_assortment on assortment_version (replaced_at) where replaced_at is not null;

-- Operators of the console, and their sessions.
create table operator (
    name        text primary key,
    role        text not null,
    password    text,          -- PHC string; null: signs in through a proxy
    stamp       text not null, -- each change replaces it
    created_at  integer not null,
    digest      blob not null  -- of all other columns
) strict;

-- Valid while the operator has the stamp.
create table operator_session (
    token_hash  blob primary key, -- SHA-256
    operator    text not null,
    stamp       text not null,
    created_at  integer not null,
    used_at     integer not null
) strict, without rowid;
create index session_operator on operator_session (operator, created_at);

-- The audit log: each change by an operator and each restore, for ever; a restore keeps the log that it finds.
create table audit_entry (
    number        integer primary key, -- 1, 2, …
    changed_at    integer not null,
    changed_by    text not null,
    note          text,
    action        text not null,
    subject_kind  text not null, -- key, text, store, …
    subject       text not null, -- prefix of the key, digest of the text, file of the backup, …
    changes       text not null, -- JSON: [{"field", "before", "after"}]
    digest        blob not null, -- of the columns above, and of the digest before
    -- SHA-256 of the confirmation in the console that led to the entry, hexadecimal: one that is sent again, at any server,
    -- does nothing. Null: by a command, or not the first entry of its action.
    confirmation  text
) strict;
create index audit_subject on audit_entry (subject, number);
create unique index audit_confirmation on audit_entry (confirmation) where confirmation is not null;

-- Webhook endpoints, in backups only: a store in use has them in a file of its own (webhooks.sql).
create table webhook_state (
    changes          integer not null,
    key_fingerprint  text
) strict;

create table webhook_endpoint (
    id        text primary key,
    document  text not null -- JSON
) strict;

create table webhook_attempt (
    endpoint  text not null,
    number    integer not null,
    document  text not null, -- JSON
    primary key (endpoint, number)
) strict, without rowid;
