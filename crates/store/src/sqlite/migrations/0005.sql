-- Assortments, and the keys that have one. Releases that don't know these tables refuse such keys.

-- Each version of each assortment, for ever. The newest number of a name is its current version; it is live if it has
-- rules. Only replaced_at is ever updated.
create table assortment_version (
    name         text not null,
    number       integer not null, -- from 1, for each name
    id           text not null unique,
    created_at   integer not null,
    replaced_at  integer,          -- null: current
    changed_by   text,
    note         text,
    codes        integer not null, -- number of product codes in the rules
    digest       blob not null,    -- SHA-256 of all other columns but replaced_at
    rules        text,             -- JSON; null: a removal
    primary key (name, number)
) strict;
create unique index current_assortment on assortment_version (name) where replaced_at is null;
create index replaced_assortment on assortment_version (replaced_at) where replaced_at is not null;

-- The keys that have an assortment: the columns of api_key, and its name.
create table assigned_key (
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
    rotated_at      integer,
    digest          blob,
    assortment      text not null
) strict;

alter table state add column assortments_counter integer not null default 0; -- goes up by random steps
alter table state add column assortments_accepted integer; -- time; only ever later
