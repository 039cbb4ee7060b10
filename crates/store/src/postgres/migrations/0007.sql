-- Overrides; see ../../sqlite/migrations/0007.sql.

create table if not exists vitrine.catalog_override (
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
create index if not exists open_override on vitrine.catalog_override (number) where status <> 'ended';

create table if not exists vitrine.base_version (
    id              bigint primary key,
    code            text collate "C" not null,
    from_revision   bigint not null,
    until_revision  bigint,
    digest          bytea not null,
    product         text not null
);
create unique index if not exists live_base on vitrine.base_version (code) where until_revision is null;
create index if not exists base_history on vitrine.base_version (code, from_revision);
create index if not exists base_retired on vitrine.base_version (until_revision) where until_revision is not null;

create table if not exists vitrine.base_text (
    base_version_id  bigint not null references vitrine.base_version (id),
    digest           bytea not null references vitrine.markdown_text (digest),
    primary key (base_version_id, digest)
);
create index if not exists base_text_digest on vitrine.base_text (digest);

-- Releases that don't know overrides would publish what they should alter: they are refused once there is an override.
create or replace function vitrine.refuse_without_overrides() returns trigger language plpgsql
    set search_path = pg_catalog as $$
begin
    if current_setting('vitrine.knows_overrides', true) is distinct from 'yes'
            and exists (select 1 from vitrine.catalog_override) then
        raise exception 'this store has overrides, which this release of Vitrine doesn''t know: publish with a newer one';
    end if;
    return new;
end
$$;
drop trigger if exists refuse_without_overrides on vitrine.revision;
create trigger refuse_without_overrides before insert on vitrine.revision
    for each row execute function vitrine.refuse_without_overrides();
