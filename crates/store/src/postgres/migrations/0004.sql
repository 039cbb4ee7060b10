-- Assortments, and the keys that have one; see ../../sqlite/migrations/0004.sql. Releases that don't know these tables
-- refuse such keys. A restore by such a release, or of a dump by one, leaves the tables as they are ("if not exists"), so
-- that a key may lie in both: its assortment counts.

create table if not exists vitrine.assortment_version (
    name         text collate "C" not null,
    number       bigint not null,
    id           text not null unique,
    created_at   bigint not null,
    replaced_at  bigint,
    changed_by   text,
    note         text,
    codes        bigint not null,
    digest       bytea not null,
    rules        text, -- never jsonb: that would reorder it
    primary key (name, number)
);
create unique index if not exists current_assortment on vitrine.assortment_version (name) where replaced_at is null;
create index if not exists replaced_assortment on vitrine.assortment_version (replaced_at) where replaced_at is not null;

create table if not exists vitrine.assigned_key (
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
    rotated_at      bigint,
    digest          bytea,
    assortment      text collate "C" not null
);

-- Servers poll the state meanwhile, and would queue behind this wait for the table.
set local lock_timeout = 5000;
alter table vitrine.state add column assortments_counter bigint not null default 0,
    add column assortments_accepted bigint;
set local lock_timeout = 0;
