-- Assortments, and the keys that have one; see ../../sqlite/migrations/0004.sql. Releases that don't know these tables
-- refuse such keys. A restore by such a release, or of a dump by one, leaves the tables as they are ("if not exists"): the
-- assortment of a key counts, and its row in api_key is dropped.

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

-- Servers poll the state and read keys meanwhile, and would queue behind this wait for a table.
set local lock_timeout = 5000;
alter table vitrine.state add column assortments_counter bigint not null default 0,
    add column assortments_accepted bigint;

delete from vitrine.api_key where prefix in (select prefix from vitrine.assigned_key);
create or replace function vitrine.skip_assigned_key() returns trigger language plpgsql as $$
begin
    if exists (select 1 from vitrine.assigned_key where prefix = new.prefix) then
        return null;
    end if;
    return new;
end
$$;
create or replace trigger skip_assigned_key before insert on vitrine.api_key for each row
    execute function vitrine.skip_assigned_key();
set local lock_timeout = 0;
